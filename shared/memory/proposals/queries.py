"""Every statement on proposals and their evidence, in the caller's transaction, which none commits."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import uuid_utils
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Select,
    Text,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by, insert

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import (
    advisory_lock_key,
    exact_scope,
    is_any_of,
    keyset_after,
    tenant_filter,
    visible_scope,
)
from shared.infra.transaction import Transaction
from shared.memory.proposals.proposal import Proposal, ProposalState
from shared.memory.proposals.table import proposal, proposal_evidence

_IS_HELD = proposal.c.state == ProposalState.HELD
_IS_OVER = and_(_IS_HELD, proposal.c.expires_at <= func.now())
_IS_WAITING = and_(_IS_HELD, proposal.c.expires_at > func.now())
_ITEM = func.jsonb_strip_nulls(
    func.jsonb_build_object(
        *("session_id", proposal_evidence.c.session_id),
        *("seq", proposal_evidence.c.seq),
        *("memory_id", proposal_evidence.c.memory_id),
    )
)
_ITEMS = func.jsonb_agg(aggregate_order_by(_ITEM, proposal_evidence.c.id))
_EVIDENCE = (
    select(func.coalesce(_ITEMS, text("'[]'::jsonb")))
    .where(proposal_evidence.c.tenant == proposal.c.tenant, proposal_evidence.c.proposal_id == proposal.c.id)
    .correlate(proposal)
    .scalar_subquery()
    .label("evidence")
)
# One that is over is expired before the sweep says so.
_STATE = case((_IS_OVER, literal(ProposalState.EXPIRED.value)), else_=proposal.c.state).label("state")
_STORED = [column for column in proposal.c if column.name not in {"state", "fingerprint"}]
_COLUMNS = (*_STORED, _STATE, _EVIDENCE)


async def lock_scope(tx: Transaction, scope: Scope) -> None:
    """Let nobody else hold proposals in this scope until the transaction ends: their number has a limit."""
    key = advisory_lock_key(
        scope.tenant, "proposals", scope.agent_id, scope.user_id or "", str(scope.user_id is None)
    )
    await tx.execute(select(func.pg_advisory_xact_lock(key)))


async def count_held(tx: Transaction, scope: Scope) -> int:
    """Return how many proposals wait in exactly this scope."""
    statement = select(func.count()).select_from(proposal).where(exact_scope(proposal, scope), _IS_WAITING)
    return int(await tx.scalar(statement) or 0)


async def find_held(tx: Transaction, scope: Scope, kind: str, fingerprint: bytes, closes: str) -> str | None:
    """Return the id of the proposal that waits in exactly this scope and says this, or None."""
    columns = proposal.c
    is_same = (columns.kind == kind, columns.fingerprint == fingerprint, columns.closes == closes)
    statement = select(columns.id).where(exact_scope(proposal, scope), _IS_HELD, *is_same)
    proposal_id: str | None = await tx.scalar(statement.with_for_update())
    return proposal_id


async def insert_held(tx: Transaction, scope: Scope, columns: Mapping[str, Any], age: timedelta) -> str:
    """Insert a proposal without evidence, which expires after `age`, and return its id."""
    proposal_id = str(uuid_utils.uuid7())
    values = prepared.scope_values(scope) | {"id": proposal_id, "state": ProposalState.HELD, **columns}
    values |= {"evidence_user_ids": [], "evidence_count": 0, "edited_at": {}}
    await tx.execute(insert(proposal).values(**values, expires_at=func.now() + age))
    return proposal_id


async def add_evidence(
    tx: Transaction,
    proposal_id: str,
    turn_keys: Sequence[tuple[str, int]],
    memory_ids: Sequence[str],
    user_ids: Sequence[str],
    edited_at: Mapping[str, datetime | None],
) -> None:
    """Add evidence that a locked proposal lacks.

    `user_ids` are those of the sessions, `edited_at` when each memory that it names was last edited, by id.
    """
    rows: list[dict[str, Any]] = [
        {"session_id": session_id, "seq": seq, "memory_id": None} for session_id, seq in turn_keys
    ]
    rows += [{"session_id": None, "seq": None, "memory_id": memory_id} for memory_id in memory_ids]
    named = [{"tenant": tx.tenant, "proposal_id": proposal_id, **row} for row in rows]
    statement = insert(proposal_evidence).values(named).on_conflict_do_nothing()
    added = (await tx.execute(statement.returning(proposal_evidence.c.id))).all()
    columns = proposal.c
    users = text("ARRAY(SELECT DISTINCT u FROM unnest(evidence_user_ids || :user_ids) u)")
    # The first time counts: what was edited since is another text than the one that was read then.
    times = {id_: moment.isoformat() if moment else None for id_, moment in edited_at.items()}
    values = {
        "evidence_count": columns.evidence_count + len(added),
        "evidence_user_ids": users.bindparams(bindparam("user_ids", list(user_ids), ARRAY(Text))),
        "edited_at": literal(times, columns.edited_at.type).op("||")(columns.edited_at),
    }
    where = (tenant_filter(proposal, tx.tenant), columns.id == proposal_id)
    await tx.execute(update(proposal).where(*where).values(values))


async def find(tx: Transaction, proposal_id: str, *, lock: bool = False) -> Proposal | None:
    """Return a proposal, or None; `lock` locks its row until the transaction ends."""
    statement = select(*_COLUMNS).where(tenant_filter(proposal, tx.tenant), proposal.c.id == proposal_id)
    if lock:
        statement = statement.with_for_update(of=proposal)
    return next(iter(await _read(tx, statement)), None)


async def list_page(
    tx: Transaction,
    scope: Scope,
    kind: str | None,
    state: ProposalState | None,
    limit: int,
    after: tuple[datetime, str] | None,
    only_of: str | None = None,
) -> list[Proposal]:
    """Return the proposals that a scope sees, newest first, from the position (created_at, id) `after` on.

    With `only_of`, those that rest on turns of other users than this one are left out.
    """
    columns = proposal.c
    conditions: list[ColumnElement[bool]] = [visible_scope(proposal, scope)]
    if kind is not None:
        conditions.append(columns.kind == kind)
    if state is not None:
        conditions.append(_STATE.element == state)
    if only_of is not None:
        conditions.append(columns.evidence_user_ids.contained_by([only_of]))
    if after is not None:
        conditions.append(keyset_after((columns.created_at, after[0], True), (columns.id, after[1], False)))
    newest_first = (columns.created_at.desc(), columns.id)
    return await _read(tx, select(*_COLUMNS).where(*conditions).order_by(*newest_first).limit(limit))


async def has_due(tx: Transaction, judge: str) -> bool:
    """Tell whether the tenant has proposals that wait, and that this judge was not asked about."""
    where = (tenant_filter(proposal, tx.tenant), _IS_WAITING, proposal.c.asked_judge.is_distinct_from(judge))
    return bool(await tx.scalar(select(select(proposal.c.id).where(*where).exists())))


async def list_due(tx: Transaction, judge: str, limit: int, scope: Scope | None = None) -> list[Proposal]:
    """Return proposals that wait and that this judge was not asked about, the oldest first.

    Of the tenant, or of exactly one scope. `judge` names an endpoint with a model.
    """
    columns = proposal.c
    where = [tenant_filter(proposal, tx.tenant), _IS_WAITING, columns.asked_judge.is_distinct_from(judge)]
    if scope is not None:
        where.append(exact_scope(proposal, scope))
    return await _read(
        tx, select(*_COLUMNS).where(*where).order_by(columns.created_at, columns.id).limit(limit)
    )


async def note_asked(tx: Transaction, proposal_ids: Sequence[str], judge: str) -> None:
    """Note that this judge was asked about proposals and left them undecided."""
    where = (tenant_filter(proposal, tx.tenant), is_any_of(proposal.c.id, proposal_ids), _IS_HELD)
    await tx.execute(update(proposal).where(*where).values(asked_judge=judge))


async def decide(tx: Transaction, proposal_id: str, columns: Mapping[str, Any]) -> Proposal:
    """Store what became of a locked proposal, and return it."""
    where = (tenant_filter(proposal, tx.tenant), proposal.c.id == proposal_id)
    values = {**columns, "decided_at": func.clock_timestamp()}
    await tx.execute(update(proposal).where(*where).values(values))
    [decided] = await _read(tx, select(*_COLUMNS).where(*where))
    return decided


async def count_by_scope(tx: Transaction) -> list[tuple[str, str | None, int]]:
    """Return (agent id, user id, number) of the scopes of the tenant in which proposals wait."""
    columns = proposal.c
    statement = (
        select(columns.agent_id, columns.user_id, func.count())
        .where(tenant_filter(proposal, tx.tenant), _IS_WAITING)
        .group_by(columns.agent_id, columns.user_id)
        .order_by(columns.agent_id, columns.user_id)
    )
    return [(agent_id, user_id, held) for agent_id, user_id, held in await tx.execute(statement)]


async def expire(tx: Transaction, scope: Scope | None = None) -> int:
    """Let what has waited too long be expired, of the tenant or of exactly one scope; return how many."""
    of_scope = tenant_filter(proposal, tx.tenant) if scope is None else exact_scope(proposal, scope)
    values = {"state": ProposalState.EXPIRED, "decided_at": proposal.c.expires_at}
    return (await tx.execute(update(proposal).where(of_scope, _IS_OVER).values(values))).rowcount


async def delete_decided(tx: Transaction, age: timedelta) -> int:
    """Delete the proposals that were decided or expired longer ago than `age`; return how many."""
    where = (tenant_filter(proposal, tx.tenant), proposal.c.decided_at < func.now() - age)
    return (await tx.execute(delete(proposal).where(*where))).rowcount


async def lock_of(tx: Transaction, *, user_id: str | None = None, agent_id: str | None = None) -> list[str]:
    """Lock the proposals of a user or an agent, and those that rest on turns of the user.

    Return their ids.
    """
    columns = proposal.c
    is_owned = columns.agent_id == agent_id
    if user_id is not None:
        is_owned = or_(columns.user_id == user_id, columns.evidence_user_ids.contains([user_id]))
    statement = select(columns.id).where(tenant_filter(proposal, tx.tenant), is_owned).order_by(columns.id)
    return list(await tx.scalars(statement.with_for_update()))


async def _read(tx: Transaction, statement: Select[Any]) -> list[Proposal]:
    return [Proposal.from_row(row) for row in (await tx.execute(statement)).mappings()]
