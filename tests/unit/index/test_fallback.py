"""A search goes on with rows while the index is unavailable, and ends while Postgres is."""

from collections.abc import Sequence
from typing import Any

import pytest

from shared.foundation import errors
from shared.foundation.stages import RecordKind
from shared.search.index.client import IndexHits, IndexQuery, SearchIndex
from shared.search.index.fallback import MAX_FALLBACK_ROWS, RowHits, RowSource, search_or_fallback
from shared.search.index.hits import Hit

QUERY = IndexQuery("tenant", RecordKind.TURN, "Where is the red lantern?", [])
ROWS = ["a red lantern", "a lamp", "a lantern"]


class StubIndex(SearchIndex):
    """An index that returns one hit, or raises `failure`."""

    def __init__(self, failure: str | None = None, embedder: Any = None) -> None:
        self.failure = failure
        self.embedder = embedder

    async def search(self, query: IndexQuery) -> IndexHits:
        """Return one hit of the query, or raise."""
        if self.failure is not None:
            raise errors.Unavailable(self.failure, "is away")
        return IndexHits([Hit(query.text, 1, 1.0, None)], ["bm25"])


class Rows:
    """A source of rows that notes how it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], int]] = []

    async def read(self, terms: Sequence[str], max_rows: int) -> list[str]:
        """Return all rows."""
        self.calls.append((list(terms), max_rows))
        return ROWS

    @property
    def source(self) -> RowSource[str]:
        """The rows as a source, each its own keyword text."""
        return RowSource("postgres", self.read, str)


async def test_the_hits_of_an_index_that_answers_are_returned_and_no_row_is_read() -> None:
    rows = Rows()
    found = await search_or_fallback(StubIndex(), QUERY, rows.source)
    assert isinstance(found, IndexHits)
    assert [hit.record_id for hit in found.hits] == [QUERY.text]
    assert rows.calls == []


@pytest.mark.parametrize("dependency", ["qdrant", "index"])
async def test_without_the_index_the_rows_with_a_term_of_the_query_are_scored(dependency: str) -> None:
    rows = Rows()
    found = await search_or_fallback(StubIndex(dependency), QUERY, rows.source)
    assert isinstance(found, RowHits)
    assert rows.calls == [(["red", "lantern"], MAX_FALLBACK_ROWS)]
    assert [row for row, _ in found.rows] == ROWS
    both, none, lantern = (score for _, score in found.rows)
    assert both > lantern > none == 0
    assert (found.stages, found.degraded) == (["postgres"], ["index"])


async def test_with_a_model_the_dense_channel_is_missing_too() -> None:
    found = await search_or_fallback(StubIndex("qdrant", embedder=object()), QUERY, Rows().source)
    assert found.degraded == ["index", "dense"]


async def test_an_unavailable_postgres_is_reported_and_not_asked_for_rows() -> None:
    rows = Rows()
    with pytest.raises(errors.Unavailable) as raised:
        await search_or_fallback(StubIndex("postgres"), QUERY, rows.source)
    assert raised.value.dependency == "postgres"
    assert rows.calls == []
