"""One declaration per kind of record, and the statements that every kind has, made from it.

A kind declares its `RecordType` in its own package, and writes only the statements that it alone needs.
Statements take the caller's transaction and never commit. They name the tenant by themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypeVar

import uuid_utils
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    RowMapping,
    Select,
    Table,
    Text,
    UpdateBase,
    any_,
    bindparam,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import TSVECTOR, Insert, insert

from shared.foundation.content import Subject
from shared.foundation.origin import Origin
from shared.foundation.stages import RecordKind
from shared.infra.postgres import NEXT_VERSION, is_any_of, keyset_after, tenant_filter
from shared.infra.transaction import Transaction
from shared.search.index.points import IndexDocument
from shared.search.text import tsvector

Record = TypeVar("Record")
Order = Sequence[ColumnElement[Any]]
Position = tuple[datetime, str]
"""A place in a list: the `created_at` and the `id` of the last record of the page before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordType(Generic[Record]):
    """A kind of record that search can find: rows with a tenant, id, `created_at`, origin and search terms.

    `from_row` makes the object of a row of `columns`, to which `computed` belong. `search_text` says from the
    columns of a row what keyword search matches while the index is away. `document` is what the index has of
    a record, and only `searchable` rows have any; None stands for all. `subjects` are those whose deletion
    deletes the record. All points of a kind whose records never change have the same `fixed_version`; the
    table of any other kind has a column `version`.
    """

    kind: RecordKind
    table: Table
    from_row: Callable[[RowMapping], Record]
    document: Callable[[Record], IndexDocument]
    subjects: tuple[Subject, ...]
    search_text: Callable[[Mapping[str, Any]], str] | None = None
    computed: tuple[ColumnElement[Any], ...] = ()
    searchable: ColumnElement[bool] | None = None
    fixed_version: int | None = None

    @property
    def columns(self) -> list[ColumnElement[Any]]:
        """What is read of a row. Search terms are used in conditions only."""
        stored = [column for column in self.table.c if not isinstance(column.type, TSVECTOR)]
        return [*stored, *self.computed]

    async def read(
        self,
        tx: Transaction,
        *conditions: ColumnElement[bool],
        order: Order = (),
        limit: int | None = None,
        lock: bool = False,
    ) -> list[Record]:
        """Return the records that meet the conditions; `lock` locks them until the transaction ends."""
        statement = self._select(tx, *conditions).order_by(*order).limit(limit)
        return await self._run(tx, statement.with_for_update() if lock else statement)

    async def find(
        self, tx: Transaction, *conditions: ColumnElement[bool], order: Order = (), lock: bool = False
    ) -> Record | None:
        """Return the first record that meets the conditions, or None."""
        found = await self.read(tx, *conditions, order=order, limit=1, lock=lock)
        return next(iter(found), None)

    async def read_by_ids(
        self, tx: Transaction, ids: Sequence[str], *conditions: ColumnElement[bool]
    ) -> dict[str, Record]:
        """Return the existing records among `ids` that meet the conditions, by id."""
        if not conditions:  # each context that shows skills reads them so
            rows = await tx.fetch(_by_ids(self), {"tenant": tx.tenant, "ids": list(ids)})
            return {row["id"]: self.from_row(row) for row in rows}
        statement = self._select(tx, is_any_of(self.table.c.id, ids), *conditions)
        return {row["id"]: self.from_row(row) for row in (await tx.execute(statement)).mappings()}

    async def read_page(
        self,
        tx: Transaction,
        limit: int,
        after: Position | None,
        *conditions: ColumnElement[bool],
        newest_first: bool = False,
    ) -> list[Record]:
        """Return the records that follow a position, by their time of creation."""
        created_at, record_id = self.table.c.created_at, self.table.c.id
        order = (created_at.desc() if newest_first else created_at, record_id)
        if after is not None:
            keys = ((created_at, after[0], newest_first), (record_id, after[1], False))
            conditions = (*conditions, keyset_after(*keys))
        return await self.read(tx, *conditions, order=order, limit=limit)

    async def read_matching(
        self,
        tx: Transaction,
        terms: Sequence[str],
        limit: int,
        *conditions: ColumnElement[bool],
        order: Order = (),
    ) -> list[Record]:
        """Return records that have any of the terms and meet the conditions: the best match first."""
        if not terms:
            return []
        matches, rank = tsvector.matches_any(self.table.c.search_terms, terms)
        return await self.read(tx, *conditions, matches, order=(rank.desc(), *order), limit=limit)

    async def insert(self, tx: Transaction, values: Mapping[str, Any], origin: Origin) -> Record:
        """Insert a record with a new id, and return it."""
        [record] = await self._run(tx, self._insert(tx, values, origin).returning(*self.columns))
        return record

    async def insert_unless_taken(
        self, tx: Transaction, values: Mapping[str, Any], origin: Origin
    ) -> Record | None:
        """Insert a record with a new id, and return it; None if its key is taken."""
        statement = self._insert(tx, values, origin).on_conflict_do_nothing().returning(*self.columns)
        return next(iter(await self._run(tx, statement)), None)

    async def replace(
        self, tx: Transaction, record_id: str, values: Mapping[str, Any], origin: Origin
    ) -> Record:
        """Replace columns of a locked record, and return it in its new version.

        `values` have all columns that its search text is made of; `origin` is that of what it says now.
        """
        version = func.greatest(self.table.c.version + 1, NEXT_VERSION)
        times = {"version": version, "updated_at": func.clock_timestamp()}
        [record] = await self._update(
            tx, record_id, {**values, **origin.columns(), **self._terms(values), **times}
        )
        return record

    async def update(
        self,
        tx: Transaction,
        record_id: str,
        values: Mapping[str, Any],
        *conditions: ColumnElement[bool],
    ) -> Record | None:
        """Change columns that search does not know; None for a record that does not meet the conditions."""
        return next(iter(await self._update(tx, record_id, values, *conditions)), None)

    async def _update(
        self, tx: Transaction, record_id: str, values: Mapping[str, Any], *conditions: ColumnElement[bool]
    ) -> list[Record]:
        where = (tenant_filter(self.table, tx.tenant), self.table.c.id == record_id, *conditions)
        statement = update(self.table).where(*where).values(dict(values)).returning(*self.columns)
        return await self._run(tx, statement)

    async def read_documents(self, tx: Transaction, record_ids: Sequence[str]) -> list[IndexDocument]:
        """Return the index documents of the searchable records among these, in no particular order."""
        records = await self.read_by_ids(tx, record_ids, *self._is_searchable())
        return [self.document(record) for record in records.values()]

    async def read_versions(self, tx: Transaction, record_ids: Sequence[str]) -> dict[str, int]:
        """Return the version of each of these records that exists and is searchable, by id."""
        return await self._versions(tx, self._select_versions(tx, is_any_of(self.table.c.id, record_ids)))

    async def read_version_page(self, tx: Transaction, after: str, limit: int) -> dict[str, int]:
        """Return one page of the searchable records, ordered by id, as id → version."""
        statement = self._select_versions(tx, self.table.c.id > after)
        return await self._versions(tx, statement.order_by(self.table.c.id).limit(limit))

    async def count_searchable(self, tx: Transaction) -> int:
        """Return the number of the searchable records."""
        return await self.count(tx, *self._is_searchable())

    async def count(self, tx: Transaction, *conditions: ColumnElement[bool]) -> int:
        """Return the number of records that meet the conditions."""
        where = (tenant_filter(self.table, tx.tenant), *conditions)
        return int(await tx.scalar(select(func.count()).select_from(self.table).where(*where)) or 0)

    def _select(self, tx: Transaction, *conditions: ColumnElement[bool]) -> Select[Any]:
        return select(*self.columns).where(tenant_filter(self.table, tx.tenant), *conditions)

    def _insert(self, tx: Transaction, values: Mapping[str, Any], origin: Origin) -> Insert:
        version = {} if self.fixed_version is not None else {"version": NEXT_VERSION}
        row = {"tenant": tx.tenant, "id": str(uuid_utils.uuid7()), **version, **values, **origin.columns()}
        return insert(self.table).values(row | self._terms(values))

    def _is_searchable(self) -> list[ColumnElement[bool]]:
        return [] if self.searchable is None else [self.searchable]

    def _select_versions(self, tx: Transaction, condition: ColumnElement[bool]) -> Select[Any]:
        fixed = self.fixed_version
        version = self.table.c.version if fixed is None else literal(fixed)
        where = (tenant_filter(self.table, tx.tenant), condition, *self._is_searchable())
        return select(self.table.c.id, version.label("version")).where(*where)

    async def _versions(self, tx: Transaction, statement: Select[Any]) -> dict[str, int]:
        return {row.id: row.version for row in await tx.execute(statement)}

    async def _run(self, tx: Transaction, statement: Select[Any] | UpdateBase) -> list[Record]:
        return [self.from_row(row) for row in (await tx.execute(statement)).mappings()]

    def _terms(self, values: Mapping[str, Any]) -> dict[str, Any]:
        if self.search_text is None:
            return {}
        terms = literal(tsvector.terms_of(self.search_text(values)), ARRAY(Text))
        return {"search_terms": func.array_to_tsvector(terms)}


@cache
def _by_ids(record_type: RecordType[Any]) -> Select[Any]:
    """Return the constant statement that reads records by their ids (`shared.infra.prepared`)."""
    columns = record_type.table.c
    is_one = columns.id == any_(bindparam("ids", type_=ARRAY(Text)))
    return select(*record_type.columns).where(columns.tenant == bindparam("tenant"), is_one)
