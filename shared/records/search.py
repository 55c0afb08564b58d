"""Search records of a kind: by the index, or by the terms of their rows while the index is away.

Both ways end in the same form, so that a kind ranks what was found and need not know which way it came.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import ColumnElement

from shared.infra.postgres import Postgres
from shared.records.record_type import RecordType
from shared.search.floor import Floor
from shared.search.index.client import IndexHits, IndexQuery, SearchIndex
from shared.search.index.fallback import RowHits, RowSource
from shared.search.index.hits import Hit
from shared.search.index.widening import search_until_enough

Row = TypeVar("Row")


class Scored(NamedTuple, Generic[Row]):
    """A record that was found, with its keyword score and its cosine."""

    record: Row
    keyword: float | None
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Found(Generic[Row]):
    """The records that were found, not ranked yet; the stages that ran, and what was unavailable."""

    scored: list[Scored[Row]]
    stages: list[str]
    degraded: list[str]
    floor: Floor | None


@dataclass(frozen=True, slots=True)
class Reader(Generic[Row]):
    """How the records of a search are read: by hits, or at most so many that have any of the terms.

    `of_hits` returns a record or None for each hit, in their order. `keyword_text` is what the index matches.
    """

    of_hits: Callable[[Sequence[Hit]], Awaitable[Sequence[Row | None]]]
    of_terms: Callable[[Sequence[str], int], Awaitable[Sequence[Row]]]
    keyword_text: Callable[[Row], str]


def reader(
    postgres: Postgres,
    tenant: str,
    record_type: RecordType[Row],
    *conditions: ColumnElement[bool],
    order: Sequence[ColumnElement[Any]] = (),
) -> Reader[Row]:
    """Return how records are read that meet the conditions. Equal matches of the terms are in this order."""

    async def of_hits(hits: Sequence[Hit]) -> list[Row | None]:
        async with postgres.for_tenant(tenant) as tx:
            by_id = await record_type.read_by_ids(tx, [hit.record_id for hit in hits], *conditions)
        return [by_id.get(hit.record_id) for hit in hits]

    async def of_terms(terms: Sequence[str], limit: int) -> list[Row]:
        async with postgres.for_tenant(tenant) as tx:
            return await record_type.read_matching(tx, terms, limit, *conditions, order=order)

    return Reader(of_hits, of_terms, lambda record: record_type.document(record).keyword_text)


async def search(index: SearchIndex, query: IndexQuery, read: Reader[Row], wanted: int) -> Found[Row]:
    """Return the records that match a query: more than `wanted`, if the index has them.

    Raises errors.Unavailable if Postgres is unavailable.
    """

    async def read_hits(found: IndexHits) -> tuple[list[Scored[Row]], int]:
        records = await read.of_hits(found.hits)
        scored = [
            Scored(record, hit.keyword, hit.cosine)
            for record, hit in zip(records, found.hits, strict=True)
            if record is not None
        ]
        return scored, len(scored)

    source = RowSource("postgres", read.of_terms, read.keyword_text)
    found, scored = await search_until_enough(index, query, source, read_hits, wanted)
    if isinstance(found, RowHits):
        scored = [Scored(row, keyword, None) for row, keyword in found.rows]
    return Found(scored or [], found.stages, found.degraded, found.floor)
