"""The statements on playbooks that no other kind has. Functions take the caller's transaction."""

from collections.abc import Sequence

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Integer,
    and_,
    any_,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    update,
)

from shared.conversation.turns import log_queries
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.infra.postgres import (
    exact_scope,
    is_any_of,
    is_in_turn_ranges,
    tenant_filter,
    visible_scope,
)
from shared.infra.transaction import Transaction
from shared.memory.playbooks import index_document, satisfaction
from shared.memory.playbooks.playbook import FlowTurns, Playbook, PlaybookDraft, Reason, words_digest
from shared.memory.playbooks.record_type import PLAYBOOK
from shared.memory.playbooks.table import playbook as playbook_table

_IS_WAITING = playbook_table.c.reason == Reason.WAITING
_NEWEST_FIRST = (playbook_table.c.created_at.desc(), playbook_table.c.id)


async def insert_playbook(
    tx: Transaction,
    scope: Scope,
    draft: PlaybookDraft,
    reason: Reason,
    origin: Origin,
    *,
    session_id: str | None = None,
    turns: FlowTurns | None = None,
) -> Playbook:
    """Insert a validated playbook and return it."""
    values = {
        "agent_id": scope.agent_id,
        "user_id": scope.user_id,
        "session_id": session_id,
        **(turns._asdict() if turns is not None else {}),
        "words_digest": words_digest(draft.user_query),
        "reason": reason,
        **draft.model_dump(exclude={"satisfied", "trust"}),
    }
    return await PLAYBOOK.insert(tx, values, origin)


async def get(tx: Transaction, playbook_id: str, *, lock: bool = False) -> Playbook | None:
    """Return a playbook, or None; `lock` locks it until the transaction ends."""
    return await PLAYBOOK.find(tx, playbook_table.c.id == playbook_id, lock=lock)


async def list_promoted(
    tx: Transaction, scope: Scope, limit: int, *, flow: str | None, query: str | None
) -> list[Playbook]:
    """Return promoted playbooks that a scope sees, of a flow or with the words of a query, newest first.

    Those that meet both come first.
    """
    conditions: list[ColumnElement[bool]] = []
    if flow is not None:
        conditions.append(playbook_table.c.flow_dact == flow)
    if query is not None:
        conditions.append(playbook_table.c.words_digest == words_digest(query))
    order = (case((and_(*conditions), 0), else_=1), *_NEWEST_FIRST)
    where = (visible_scope(playbook_table, scope), playbook_table.c.promoted, or_(*conditions))
    return await PLAYBOOK.read(tx, *where, order=order, limit=limit)


async def list_decidable(tx: Transaction, limit: int, *conditions: ColumnElement[bool]) -> list[Playbook]:
    """Return playbooks that wait for what the user has said by now, oldest first.

    Those whose user is still silent are left out: they would take the places of the others.
    """
    columns = playbook_table.c
    first_seq = func.coalesce(columns.first_seq, columns.last_seq)
    is_decidable = satisfaction.is_decidable(tx.tenant, columns.session_id, first_seq, columns.last_seq)
    oldest_first = (columns.created_at, columns.id)
    return await PLAYBOOK.read(tx, _IS_WAITING, is_decidable, *conditions, order=oldest_first, limit=limit)


async def list_waiting_in(tx: Transaction, session_ids: Sequence[str]) -> list[Playbook]:
    """Return the playbooks that wait for the user of one of these sessions."""
    in_session = is_any_of(playbook_table.c.session_id, session_ids)
    return await PLAYBOOK.read(tx, in_session, _IS_WAITING, order=_NEWEST_FIRST)


async def decide(tx: Transaction, playbook_id: str, reason: Reason) -> Playbook | None:
    """End the waiting of a playbook and return it; None if another request has ended it or deleted it."""
    return await PLAYBOOK.update(tx, playbook_id, {"reason": reason}, _IS_WAITING)


async def move_turns(tx: Transaction, playbook: Playbook, turns: FlowTurns) -> None:
    """Note that the flow of a waiting playbook had other turns than was known when it was recorded."""
    is_one = (tenant_filter(playbook_table, playbook.tenant), playbook_table.c.id == playbook.id)
    await tx.execute(update(playbook_table).where(*is_one, _IS_WAITING).values(turns._asdict()))


async def keep_without_sessions(tx: Transaction, session_ids: Sequence[str]) -> None:
    """Let playbooks stay although these sessions, which have expired, are about to be deleted."""
    if session_ids:
        where = (
            tenant_filter(playbook_table, tx.tenant),
            is_any_of(playbook_table.c.session_id, session_ids),
        )
        reason = case((_IS_WAITING, Reason.SESSION_ENDED.value), else_=playbook_table.c.reason)
        values = {"reason": reason, "session_id": None, "first_seq": None, "last_seq": None}
        await tx.execute(update(playbook_table).where(*where).values(values))


async def lock_of(tx: Transaction, *, session_ids: Sequence[str] = (), **owner: str) -> list[str]:
    """Lock the playbooks of these sessions, and those of an owner, by id; return their ids.

    An owner is `user_id`, of all agents, or `agent_id`, of all users.
    """
    conditions = [playbook_table.c[name] == value for name, value in owner.items()]
    conditions.append(is_any_of(playbook_table.c.session_id, session_ids))
    where = (tenant_filter(playbook_table, tx.tenant), or_(*conditions))
    statement = select(playbook_table.c.id).where(*where).order_by(playbook_table.c.id).with_for_update()
    return list((await tx.scalars(statement)).all())


async def lock_from_turns(tx: Transaction, ranges: Sequence[tuple[str, int, int]]) -> list[str]:
    """Lock the playbooks of flows that had one of these turns, by id; return their ids.

    A range of turns is (session id, first seq, last seq).
    """
    columns = playbook_table.c
    first_seq = func.coalesce(columns.first_seq, columns.last_seq)
    has_turn = is_in_turn_ranges(columns.session_id, first_seq, columns.last_seq, ranges)
    statement = select(columns.id).where(tenant_filter(playbook_table, tx.tenant), has_turn)
    return list(await tx.scalars(statement.order_by(columns.id).with_for_update()))


async def reopen_decided_by(tx: Transaction, session_id: str, seqs: Sequence[int]) -> list[str]:
    """Let those playbooks wait again about which one of these turns has decided; return their ids."""
    columns = playbook_table.c
    next_seq = log_queries.next_of_user_after(tx.tenant, columns.session_id, columns.last_seq)
    where = (
        *(tenant_filter(playbook_table, tx.tenant), columns.session_id == session_id),
        *(columns.reason.in_([Reason.CONTINUED, Reason.CORRECTED]), columns.last_seq.is_not(None)),
        next_seq == any_(literal(list(seqs), ARRAY(Integer))),
    )
    locked = select(columns.id).where(*where).order_by(columns.id).with_for_update()
    ids = list(await tx.scalars(locked))
    is_one = (tenant_filter(playbook_table, tx.tenant), is_any_of(columns.id, ids))
    await tx.execute(update(playbook_table).where(*is_one).values(reason=Reason.WAITING))
    return ids


async def has_query(tx: Transaction, scope: Scope, user_query: str, except_id: str) -> bool:
    """Return whether exactly this scope has another playbook with the same words of a query."""
    has_words = playbook_table.c.words_digest == words_digest(user_query)
    where = (exact_scope(playbook_table, scope), has_words, playbook_table.c.id != except_id)
    return bool(await tx.scalar(select(exists(select(playbook_table.c.id).where(*where)))))


async def list_embedding_texts(tx: Transaction, ids: Sequence[str]) -> list[str]:
    """Return what of these playbooks was embedded."""
    is_one = (tenant_filter(playbook_table, tx.tenant), is_any_of(playbook_table.c.id, ids))
    promoted = select(playbook_table.c.user_query).where(*is_one, playbook_table.c.promoted)
    rows = await tx.scalars(promoted)
    return [index_document.embedding_text(user_query) for user_query in rows]
