"""Export every kind of record of a scope, or the turns of one session, as NDJSON.

The scope is exact, as in an export of memories: an agent's records of one user, or those without a user.
What belongs to the agent as a whole (its profile, texts, files and keys) goes with the scope without a
user. One page is read per transaction, so that a slow reader keeps none open.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from sqlalchemy import RowMapping

from shared.conversation.sessions import read
from shared.foundation.scope import Caller, Scope
from shared.infra.transaction import Transaction
from shared.lifecycle.transfer import graph, memory_lines, row_lines, row_queries
from shared.lifecycle.transfer.line_kinds import ROW_KINDS
from shared.lifecycle.transfer.row_kind import GRAPH_KINDS, LineKind, Owner, RowKind
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources

# A row may have a megabyte.
_ROW_PAGE = 50
ReadPage = Callable[[Transaction, row_queries.Key | None], Awaitable[list[RowMapping]]]


async def export_scope(
    resources: Resources, caller: Caller, scope: Scope, kinds: Sequence[LineKind]
) -> AsyncIterator[bytes]:
    """Yield each record of these kinds that exactly this scope has, as a line with its kind."""
    for name in kinds:
        if name is LineKind.MEMORY:
            async for line in memory_lines.export(resources, scope):
                yield b'{"kind":"memory",' + line.removeprefix(b"{")
        elif name in GRAPH_KINDS:
            async for line in graph.export(resources, scope, name):
                yield line
        elif may_reach(caller, scope, Action.READ) or not is_of_agent(name):
            async for line in _export_rows(resources, scope, ROW_KINDS[name]):
                yield line


async def export_turns(resources: Resources, caller: Caller, session_id: str) -> AsyncIterator[bytes]:
    """Yield each turn of a session as a line, in order.

    Raises errors.NotFound, before the first line, if there is no such session that the caller may see.
    """
    session = await read.read_session(resources, caller, session_id)
    kind = ROW_KINDS[LineKind.TURN]

    async def read_page(tx: Transaction, after: row_queries.Key | None) -> list[RowMapping]:
        return await row_queries.list_session_page(tx, kind, session.id, after, _ROW_PAGE)

    async for line in _export_pages(resources, session.tenant, kind, read_page):
        yield line


def may_reach(caller: Caller, scope: Scope, action: Action) -> bool:
    """Return whether what belongs to the agent as a whole goes with this scope, and with this key."""
    owner = rights.Owner(scope.agent_id)
    return scope.user_id is None and rights.allows(caller, Area.AGENTS, action, owner)


def is_of_agent(kind: LineKind) -> bool:
    """Return whether the rows of a kind belong to the agent as a whole."""
    return kind is LineKind.AGENT or ROW_KINDS[kind].owner is Owner.AGENT


async def _export_rows(resources: Resources, scope: Scope, kind: RowKind) -> AsyncIterator[bytes]:
    async def read_page(tx: Transaction, after: row_queries.Key | None) -> list[RowMapping]:
        return await row_queries.list_page(tx, kind, scope, after, _ROW_PAGE)

    async for line in _export_pages(resources, scope.tenant, kind, read_page):
        yield line


async def _export_pages(
    resources: Resources, tenant: str, kind: RowKind, read_page: ReadPage
) -> AsyncIterator[bytes]:
    after: row_queries.Key | None = None
    while True:
        async with resources.postgres.for_tenant(tenant) as tx:
            rows = await read_page(tx, after)
        for row in rows:
            yield row_lines.write_row(kind, row)
        if len(rows) < _ROW_PAGE:
            return
        after = row_queries.position_of(kind, rows[-1])
