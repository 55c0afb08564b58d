"""Every statement on proposals and reviews of skills, in the caller's transaction, which none commits."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import uuid_utils
from sqlalchemy import BigInteger, Text, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from shared.dreams.skill_proposals.proposal import ProposalDraft, ProposalState, SkillProposal
from shared.dreams.skill_proposals.table import skill_proposal, skill_review
from shared.foundation.scope import Scope
from shared.foundation.stages import DreamPass
from shared.infra import prepared
from shared.infra.postgres import exact_scope, is_any_of, keyset_after, tenant_filter, visible_scope
from shared.infra.transaction import Transaction
from shared.memory.skills import queries as skill_queries


async def insert_open(
    tx: Transaction, scope: Scope, run_id: str, name: DreamPass, draft: ProposalDraft
) -> SkillProposal:
    """Insert a proposal and return it."""
    columns = {
        "id": str(uuid_utils.uuid7()),
        "run_id": run_id,
        "pass": name,
        "name": draft.name,
        "summary": draft.summary,
        "content": draft.content,
        "replaces": list(draft.replaces),
        "based_on": dict(draft.based_on),
        "session_ids": list(draft.session_ids),
        "skill_ids": list(draft.based_on),
        "state": ProposalState.OPEN,
    }
    values = prepared.scope_values(scope) | columns
    statement = insert(skill_proposal).values(**values).returning(*skill_proposal.c)
    return SkillProposal.from_row((await tx.execute(statement)).mappings().one())


async def find_scope(tx: Transaction, proposal_id: str) -> Scope | None:
    """Return the scope whose skills a proposal is about, or None if there is no such proposal."""
    columns = skill_proposal.c
    where = (tenant_filter(skill_proposal, tx.tenant), columns.id == proposal_id)
    row = (await tx.execute(select(columns.agent_id, columns.user_id).where(*where))).one_or_none()
    return None if row is None else Scope(tx.tenant, row.agent_id, row.user_id)


async def find(tx: Transaction, proposal_id: str, *, lock: bool = False) -> SkillProposal | None:
    """Return a proposal, or None; `lock` locks its row until the transaction ends."""
    where = (tenant_filter(skill_proposal, tx.tenant), skill_proposal.c.id == proposal_id)
    statement = select(skill_proposal).where(*where)
    row = (await tx.execute(statement.with_for_update() if lock else statement)).mappings().one_or_none()
    return None if row is None else SkillProposal.from_row(row)


async def list_of_run(tx: Transaction, run_id: str) -> list[SkillProposal]:
    """Return the proposals of a run, in the order in which they were made."""
    where = (tenant_filter(skill_proposal, tx.tenant), skill_proposal.c.run_id == run_id)
    statement = select(skill_proposal).where(*where).order_by(skill_proposal.c.id)
    return [SkillProposal.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def lock_of_run(tx: Transaction, run_id: str) -> list[SkillProposal]:
    """Lock and return the proposals of a run, the latest first."""
    where = (tenant_filter(skill_proposal, tx.tenant), skill_proposal.c.run_id == run_id)
    statement = select(skill_proposal).where(*where).order_by(skill_proposal.c.id.desc()).with_for_update()
    return [SkillProposal.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_page(
    tx: Transaction, scope: Scope, state: ProposalState | None, limit: int, after: tuple[datetime, str] | None
) -> list[SkillProposal]:
    """Return the proposals that a scope sees, newest first, from the position (created_at, id) `after` on."""
    columns = skill_proposal.c
    conditions = [visible_scope(skill_proposal, scope)]
    if state is not None:
        conditions.append(columns.state == state)
    if after is not None:
        conditions.append(keyset_after((columns.created_at, after[0], True), (columns.id, after[1], False)))
    newest_first = (columns.created_at.desc(), columns.id)
    statement = select(skill_proposal).where(*conditions).order_by(*newest_first).limit(limit)
    return [SkillProposal.from_row(row) for row in (await tx.execute(statement)).mappings()]


async def list_refused(tx: Transaction, scope: Scope, name: str) -> list[SkillProposal]:
    """Return the proposals of a name in exactly this scope that were refused or taken back."""
    columns = skill_proposal.c
    states = (ProposalState.REFUSED, ProposalState.WITHDRAWN)
    where = (exact_scope(skill_proposal, scope), columns.name == name, is_any_of(columns.state, states))
    rows = (await tx.execute(select(skill_proposal).where(*where))).mappings()
    return [SkillProposal.from_row(row) for row in rows]


async def delete_open(tx: Transaction, scope: Scope, name: str) -> None:
    """Delete the open proposals of a name in exactly this scope: a later one takes their place."""
    columns = skill_proposal.c
    where = (exact_scope(skill_proposal, scope), columns.name == name, columns.state == ProposalState.OPEN)
    await tx.execute(delete(skill_proposal).where(*where))


async def decide(tx: Transaction, proposal: SkillProposal, columns: Mapping[str, Any]) -> SkillProposal:
    """Store what became of a locked proposal, and return it."""
    where = (tenant_filter(skill_proposal, proposal.tenant), skill_proposal.c.id == proposal.id)
    values = {**columns, "decided_at": func.clock_timestamp()}
    statement = update(skill_proposal).where(*where).values(values).returning(*skill_proposal.c)
    return SkillProposal.from_row((await tx.execute(statement)).mappings().one())


async def carry_over(tx: Transaction, skill_id: str, before: int, after: int) -> None:
    """Let a new version of a skill stand for the one before in what dreams noted of it.

    Only its summary has changed: a proposal was made from the content, and so was a review.
    """
    columns, key = skill_proposal.c, literal(skill_id, Text)
    is_based = (
        tenant_filter(skill_proposal, tx.tenant),
        columns.skill_ids.contains([skill_id]),
        columns.based_on[skill_id].astext.cast(BigInteger) == before,
    )
    based_on = columns.based_on.op("||")(func.jsonb_build_object(key, literal(after, BigInteger)))
    await tx.execute(update(skill_proposal).where(*is_based).values(based_on=based_on))
    is_reviewed = (
        tenant_filter(skill_review, tx.tenant),
        skill_review.c.skill_id == skill_id,
        skill_review.c.version == before,
    )
    await tx.execute(update(skill_review).where(*is_reviewed).values(version=after))


async def list_reviewed(tx: Transaction, scope: Scope, name: DreamPass) -> dict[str, int]:
    """Return the versions of skills that a pass has reviewed, by id, of the whole tenant."""
    where = (tenant_filter(skill_review, scope.tenant), skill_review.c["pass"] == name)
    rows = await tx.execute(select(skill_review.c.skill_id, skill_review.c.version).where(*where))
    return {row.skill_id: row.version for row in rows}


async def save_reviewed(tx: Transaction, name: DreamPass, versions: Mapping[str, int]) -> None:
    """Note which versions of skills a pass has reviewed, of those that still exist."""
    for skill_id in sorted(await skill_queries.lock_existing(tx, versions)):
        values = {"tenant": tx.tenant, "skill_id": skill_id, "pass": name, "version": versions[skill_id]}
        statement = insert(skill_review).values(values)
        await tx.execute(
            statement.on_conflict_do_update(
                index_elements=["tenant", "skill_id", "pass"], set_={"version": statement.excluded.version}
            )
        )
