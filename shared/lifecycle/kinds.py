"""What indexing has to know about each kind of record that search can find: one object per kind in `KINDS`.

Workers load index documents through it, a reindex pages through all records, and the sweep compares
records with points. A new searchable kind needs an entry in `KINDS` and nothing else in these three places.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from shared.conversation.observations.record_type import OBSERVATION
from shared.conversation.turns import index_document as turn_document
from shared.conversation.turns import queries as turn_queries
from shared.foundation.content import Subject, declare_store
from shared.foundation.stages import RecordKind
from shared.infra import redis as redis_client
from shared.infra.transaction import Transaction
from shared.memory.documents import chunk_queries
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm import maintenance_queries as memory_maintenance_queries
from shared.memory.playbooks.record_type import PLAYBOOK
from shared.memory.preferences.record_type import PREFERENCE
from shared.memory.skills.record_type import SKILL
from shared.memory.working import index_document as working_document
from shared.memory.working import queries as working_queries
from shared.memory.working.working_entry import WorkingEntryInfo
from shared.memory.working.working_memory import WorkingMemory
from shared.platform.resources import Resources
from shared.records.record_type import RecordType
from shared.search.index.points import IndexDocument

_PAGE_SIZE = 1000


class SearchableKind(Protocol):
    """A kind of record. Every method reads records of one tenant.

    All of them raise errors.Unavailable if the database of the records is unavailable.
    """

    async def load_documents(
        self, resources: Resources, tenant: str, record_ids: Sequence[str]
    ) -> list[IndexDocument]:
        """Return the index documents of the existing records among these, in no particular order."""
        ...

    async def versions(self, resources: Resources, tenant: str, record_ids: Sequence[str]) -> dict[str, int]:
        """Return the current version of each of these records that exists, by record id."""
        ...

    def pages(self, resources: Resources, tenant: str) -> AsyncIterator[dict[str, int]]:
        """Yield all records in pages of record id → current version. No page is empty."""
        ...

    async def count(self, resources: Resources, tenant: str) -> int:
        """Return the number of records."""
        ...


@dataclass(frozen=True, slots=True)
class PostgresKind:
    """A kind whose records are rows in Postgres.

    Each query gets a transaction of the tenant. `read_page` gets the last record id of the previous page
    ('' for the first page) and a limit, and returns the records that follow, in their order.
    """

    read_documents: Callable[[Transaction, Sequence[str]], Awaitable[list[IndexDocument]]]
    read_versions: Callable[[Transaction, Sequence[str]], Awaitable[dict[str, int]]]
    read_page: Callable[[Transaction, str, int], Awaitable[dict[str, int]]]
    read_count: Callable[[Transaction], Awaitable[int]]

    @classmethod
    def of(cls, record_type: RecordType[Any]) -> "PostgresKind":
        """Return how the records of a declared kind are read."""
        return cls(
            record_type.read_documents,
            record_type.read_versions,
            record_type.read_version_page,
            record_type.count_searchable,
        )

    async def load_documents(
        self, resources: Resources, tenant: str, record_ids: Sequence[str]
    ) -> list[IndexDocument]:
        """Read the rows and return their index documents."""
        async with resources.postgres.for_tenant(tenant) as tx:
            return await self.read_documents(tx, record_ids)

    async def versions(self, resources: Resources, tenant: str, record_ids: Sequence[str]) -> dict[str, int]:
        """Return the current versions of the rows that exist."""
        async with resources.postgres.for_tenant(tenant) as tx:
            return await self.read_versions(tx, record_ids)

    async def pages(self, resources: Resources, tenant: str) -> AsyncIterator[dict[str, int]]:
        """Yield all rows in pages, each read in a transaction of its own."""
        after = ""
        while True:
            async with resources.postgres.for_tenant(tenant) as tx:
                page = await self.read_page(tx, after, _PAGE_SIZE)
            if not page:
                return
            yield page
            after = next(reversed(page))

    async def count(self, resources: Resources, tenant: str) -> int:
        """Return the number of rows."""
        async with resources.postgres.for_tenant(tenant) as tx:
            return await self.read_count(tx)


class WorkingKind:
    """Working-memory entries, which are in Redis. Those whose time to live is over don't exist."""

    async def load_documents(
        self, resources: Resources, tenant: str, record_ids: Sequence[str]
    ) -> list[IndexDocument]:
        """Read the entries with their whole values and return their index documents."""
        with redis_client.failures_as_unavailable():
            entries = await working_queries.read_many(
                WorkingMemory.from_resources(resources, tenant), record_ids
            )
        return [working_document.document(tenant, entry) for entry in entries.values()]

    async def versions(self, resources: Resources, tenant: str, record_ids: Sequence[str]) -> dict[str, int]:
        """Return the current versions of the live entries."""
        with redis_client.failures_as_unavailable():
            entries = await working_queries.read_many(
                WorkingMemory.from_resources(resources, tenant), record_ids
            )
        return _versions(list(entries.values()))

    async def pages(self, resources: Resources, tenant: str) -> AsyncIterator[dict[str, int]]:
        """Yield all live entries in one page, because Redis lists them without their values at once."""
        if infos := await _list_working(resources, tenant):
            yield _versions(infos)

    async def count(self, resources: Resources, tenant: str) -> int:
        """Return the number of live entries."""
        return len(await _list_working(resources, tenant))


async def _list_working(resources: Resources, tenant: str) -> list[WorkingEntryInfo]:
    with redis_client.failures_as_unavailable():
        return await working_queries.list_entries(WorkingMemory.from_resources(resources, tenant))


def _versions(infos: Sequence[WorkingEntryInfo]) -> dict[str, int]:
    return {working_document.record_id_of(info.key): info.version for info in infos}


_DECLARED = (OBSERVATION, PREFERENCE, PLAYBOOK, SKILL)
ROW_KINDS: dict[RecordKind, PostgresKind] = {
    **{declared.kind: PostgresKind.of(declared) for declared in _DECLARED},
    RecordKind.MEMORY: PostgresKind(
        memory_document.load_documents,
        memory_maintenance_queries.get_versions,
        memory_maintenance_queries.page_versions,
        memory_maintenance_queries.count,
    ),
    RecordKind.TURN: PostgresKind(
        turn_document.load_documents, turn_queries.versions, turn_queries.page_versions, turn_queries.count
    ),
    RecordKind.DOCUMENT_CHUNK: PostgresKind(
        chunk_queries.load_documents, chunk_queries.versions, chunk_queries.page_versions, chunk_queries.count
    ),
}

KINDS: dict[RecordKind, SearchableKind] = {**ROW_KINDS, RecordKind.WORKING: WorkingKind()}

_SUBJECTS = {
    **{declared.kind: declared.subjects for declared in _DECLARED},
    RecordKind.MEMORY: (Subject.MEMORY, Subject.USER, Subject.AGENT),
    RecordKind.TURN: (Subject.TURN, Subject.SESSION),
    RecordKind.WORKING: (Subject.SESSION, Subject.USER, Subject.AGENT),
    RecordKind.DOCUMENT_CHUNK: (Subject.DOCUMENT,),
}
for _kind, _subjects in _SUBJECTS.items():
    declare_store("qdrant", _kind, *_subjects, reason="a point is deleted with its record, by its record id")
