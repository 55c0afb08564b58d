"""Every statement on tombstones of the graph. Functions take the caller's transaction and never commit."""

from collections.abc import Sequence

from sqlalchemy import ARRAY, ColumnElement, LargeBinary, any_, delete, literal, select
from sqlalchemy.dialects.postgresql import insert

from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope
from shared.infra.transaction import Transaction
from shared.memory.graph.table import graph_tombstone


async def add(tx: Transaction, scope: Scope, digests: Sequence[bytes]) -> None:
    """Store those of these tombstones that exactly this scope does not have yet."""
    owner = {"tenant": scope.tenant, "agent_id": scope.agent_id, "user_id": scope.user_id}
    if digests:
        rows = [{**owner, "digest": digest} for digest in digests]
        await tx.execute(insert(graph_tombstone).values(rows).on_conflict_do_nothing())


async def remove(tx: Transaction, scope: Scope, digests: Sequence[bytes]) -> None:
    """Delete the tombstones of exactly this scope with these digests."""
    where = (exact_scope(graph_tombstone, scope), _is_any_of(digests))
    await tx.execute(delete(graph_tombstone).where(*where))


async def find_existing(tx: Transaction, scope: Scope, digests: Sequence[bytes]) -> set[bytes]:
    """Return those of these digests that have a tombstone in exactly this scope."""
    where = (exact_scope(graph_tombstone, scope), _is_any_of(digests))
    statement = select(graph_tombstone.c.digest).where(*where)
    return {bytes(digest) for digest in (await tx.scalars(statement)).all()}


def _is_any_of(digests: Sequence[bytes]) -> ColumnElement[bool]:
    """Return the condition as one array: an import may name more than a statement can have parameters."""
    return graph_tombstone.c.digest == any_(literal(list(digests), ARRAY(LargeBinary)))
