"""Search the index, or the rows of a kind's own database while the index is unavailable.

The same tokenizer and the same score serve both, so that the fallback finds what the keyword channel finds.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.foundation import errors
from shared.search.floor import Floor
from shared.search.index.client import IndexHits, IndexQuery, SearchIndex
from shared.search.text import bm25
from shared.search.text.tokenizer import tokenize_query

MAX_FALLBACK_ROWS = 500
"""Rows that are read and scored at most."""

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class RowSource(Generic[Row]):
    """Where the records of a kind are read without the index.

    `stage` names the database in the response. `read` takes the terms of the query and a number, and
    returns at most so many rows that contain any of the terms, best match first. `keyword_text` returns
    the text of a row that the index would match.
    """

    stage: str
    read: Callable[[Sequence[str], int], Awaitable[Sequence[Row]]]
    keyword_text: Callable[[Row], str]


@dataclass(frozen=True, slots=True)
class RowHits(Generic[Row]):
    """What was found without the index: rows, each with its BM25 score. No floor applies to them."""

    rows: list[tuple[Row, float]]
    stages: list[str]
    degraded: list[str]
    floor: Floor | None = None


async def search_or_fallback(
    index: SearchIndex, query: IndexQuery, source: RowSource[Row]
) -> IndexHits | RowHits[Row]:
    """Return the hits of the index, or scored rows of `source` while the index is unavailable.

    Raises errors.Unavailable if Postgres is unavailable, because then the rows are too, and what the
    source raises.
    """
    try:
        return await index.search(query)
    except errors.Unavailable as error:
        if error.dependency == "postgres":
            raise
    rows = await source.read(tokenize_query(query.text), MAX_FALLBACK_ROWS)
    scores = bm25.score_texts(query.text, [source.keyword_text(row) for row in rows])
    degraded = ["index"] if index.embedder is None else ["index", "dense"]
    return RowHits(list(zip(rows, scores, strict=True)), [source.stage], degraded)
