"""Every statement on the owners of working-memory namespaces.

Functions take the caller's transaction and never commit. Namespaces are passed in any spelling.
"""

from collections.abc import Iterable

from sqlalchemy import ARRAY, RowMapping, Text, any_, bindparam, delete, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert

from shared.conversation.sessions.session import SessionKind
from shared.conversation.sessions.table import session, working_namespace
from shared.foundation.names import fold
from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import advisory_lock_key, is_any_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.platform.auth.rights import Owner

_OWNER_COLUMNS = (
    working_namespace.c.namespace,
    working_namespace.c.agent_id,
    working_namespace.c.user_id,
    working_namespace.c.session_id,
)
_OWNERS = select(*_OWNER_COLUMNS).where(
    working_namespace.c.tenant == bindparam("tenant"),
    working_namespace.c.namespace == any_(bindparam("namespaces", type_=ARRAY(Text))),
)
_OWNERS_FOR_SHARE = _OWNERS.with_for_update(read=True)
_OWNERS_FOR_UPDATE = _OWNERS.with_for_update()


async def owners_of(
    tx: Transaction, namespaces: Iterable[str], *, for_share: bool = False
) -> dict[str, Owner]:
    """Return the owner of each namespace, by its folded name. What nobody has opened belongs to nobody.

    `for_share` keeps the owners from changing until the transaction ends.
    """
    owners = {fold(name): Owner(namespace=fold(name)) for name in namespaces}
    statement = _OWNERS_FOR_SHARE if for_share else _OWNERS
    for row in await tx.fetch(statement, {"tenant": tx.tenant, "namespaces": list(owners)}):
        owners[row["namespace"]] = _to_owner(row)
    return owners


def _to_owner(row: RowMapping) -> Owner:
    is_of_session = row["namespace"].startswith(f"{SessionKind.SESSION}/")
    if row["agent_id"] is None or (is_of_session and row["session_id"] is None):
        return Owner(namespace=row["namespace"], is_deleted=True)
    return Owner(row["agent_id"], row["user_id"], row["namespace"])


async def owner_of(tx: Transaction, namespace: str, *, for_share: bool = False) -> Owner:
    """Return the owner of one namespace, as `owners_of` does."""
    (owner,) = (await owners_of(tx, [namespace], for_share=for_share)).values()
    return owner


async def lock_owner(tx: Transaction, namespace: str) -> Owner | None:
    """Lock the row of a namespace and return its owner, or None if nobody has opened it."""
    values = {"tenant": tx.tenant, "namespaces": [fold(namespace)]}
    row = await tx.fetch_one(_OWNERS_FOR_UPDATE, values)
    return None if row is None else _to_owner(row)


async def add_owner(tx: Transaction, scope: Scope, namespace: str, session_id: str | None) -> bool:
    """Give a namespace that nobody has opened to a scope; return False if somebody has opened it."""
    columns = prepared.scope_values(scope) | {"namespace": fold(namespace), "session_id": session_id}
    statement = insert(working_namespace).values(columns).on_conflict_do_nothing()
    return await tx.scalar(statement.returning(working_namespace.c.namespace)) is not None


async def set_owner(tx: Transaction, scope: Scope, namespace: str, session_id: str | None) -> None:
    """Give a namespace, whose row the transaction has locked, to a scope."""
    where = (tenant_filter(working_namespace, scope.tenant), working_namespace.c.namespace == fold(namespace))
    columns = {"agent_id": scope.agent_id, "user_id": scope.user_id, "session_id": session_id}
    await tx.execute(update(working_namespace).where(*where).values(columns))


async def release_owned(
    tx: Transaction, *, user_id: str | None = None, agent_id: str | None = None
) -> list[str]:
    """Take all namespaces from an erased user or agent, so that nobody has them; return their names."""
    is_owned = working_namespace.c.user_id == user_id if user_id else working_namespace.c.agent_id == agent_id
    statement = select(working_namespace.c.namespace).where(
        tenant_filter(working_namespace, tx.tenant), is_owned
    )
    locked = statement.order_by(working_namespace.c.namespace).with_for_update()
    names = list((await tx.scalars(locked)).all())
    where = (tenant_filter(working_namespace, tx.tenant), is_any_of(working_namespace.c.namespace, names))
    await tx.execute(update(working_namespace).where(*where).values(agent_id=None, user_id=None))
    return names


async def lock_entry_names(tx: Transaction, namespaces: Iterable[str], *, shared: bool) -> None:
    """Lock the names of the entries in namespaces, opened or not, until the transaction ends.

    Shared by who stores a copy of such names, and exclusively by who has deleted entries and erases copies.
    """
    lock_function = func.pg_advisory_xact_lock_shared if shared else func.pg_advisory_xact_lock
    for name in sorted({fold(namespace) for namespace in namespaces}):
        await tx.execute(select(lock_function(advisory_lock_key(tx.tenant, "entry names", name))))


async def lock_without_session(tx: Transaction, after: str, limit: int) -> list[str]:
    """Lock namespaces that no session writes to any more, from the name `after` on; return their names.

    Those that another transaction has locked are left out.
    """
    is_of_session = (
        session.c.tenant == working_namespace.c.tenant,
        func.lower(session.c.namespace) == working_namespace.c.namespace,
    )
    where = (
        tenant_filter(working_namespace, tx.tenant),
        working_namespace.c.session_id.is_(None),
        working_namespace.c.namespace > after,
        ~exists().where(*is_of_session),
    )
    statement = select(working_namespace.c.namespace).where(*where).order_by(working_namespace.c.namespace)
    locked = statement.limit(limit).with_for_update(skip_locked=True)
    return list((await tx.scalars(locked)).all())


async def remove(tx: Transaction, namespaces: Iterable[str]) -> None:
    """Delete the rows of these namespaces."""
    where = (
        tenant_filter(working_namespace, tx.tenant),
        is_any_of(working_namespace.c.namespace, namespaces),
    )
    await tx.execute(delete(working_namespace).where(*where))
