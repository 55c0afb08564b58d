"""List proposals, publish or refuse one, store new ones, and take back those of a run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from shared.dreams.skill_proposals import publish, queries
from shared.dreams.skill_proposals.proposal import (
    MAX_REASON,
    ProposalDraft,
    ProposalState,
    SkillProposal,
)
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors, validation
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import DreamPass
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.memory.skills import queries as skill_queries
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

_DREAM = "dream"


class Decision(StrEnum):
    """What is to become of a proposal."""

    PUBLISH = "publish"
    REFUSE = "refuse"


@dataclass(slots=True)
class UndoneProposals:
    """What was undone of a run: names of skills, and {name, reason} of those that stay as they are."""

    undone: list[str] = field(default_factory=list)
    kept: list[dict[str, str]] = field(default_factory=list)


async def list_proposals(
    resources: Resources,
    scope: Scope,
    state: ProposalState | None,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[SkillProposal]:
    """Return the proposals that a scope sees, newest first, from the position (created_at, id) `after` on."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.list_page(tx, scope, state, limit, after)


async def get(resources: Resources, caller: Caller, proposal_id: str) -> SkillProposal:
    """Return a proposal. Raises errors.NotFound if the caller sees none."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        found = await queries.find(tx, proposal_id)
    owner = Owner(found.agent_id, found.user_id) if found is not None else Owner()
    if found is None or not rights.allows(caller, Area.MEMORIES, Action.READ, owner):
        raise errors.NotFound(f"no proposal '{proposal_id}'")
    return found


async def decide(
    resources: Resources, caller: Caller, proposal_id: str, decision: Decision, reason: str | None
) -> SkillProposal:
    """Publish or refuse an open proposal, and return it.

    Raises errors.NotFound if the caller sees none, errors.Forbidden if it may not write the skills of that
    scope, and errors.Conflict if it was decided before, or if the skills that it was made from have changed.
    """
    if reason is not None:
        validation.check_text(reason, "reason", MAX_REASON)
    return await _commit(resources, caller, proposal_id, decision, reason)


@repeated_after_deadlock
async def _commit(
    resources: Resources, caller: Caller, proposal_id: str, decision: Decision, reason: str | None
) -> SkillProposal:
    missing = f"no proposal '{proposal_id}'"
    async with resources.transaction(caller.tenant) as tx:
        if (scope := await queries.find_scope(tx, proposal_id)) is None:
            raise errors.NotFound(missing)
        await removals.delay_erasures(tx, scope)
        proposal = await queries.find(tx, proposal_id, lock=True)
        if proposal is None:
            raise errors.NotFound(missing)
        owner = Owner(proposal.agent_id, proposal.user_id)
        rights.require(caller, Area.MEMORIES, Action.WRITE, owner, missing)
        if proposal.state is not ProposalState.OPEN:
            raise errors.Conflict(f"the proposal is {proposal.state} already")
        if decision is Decision.REFUSE:
            columns = {"state": ProposalState.REFUSED, "reason": reason, "decided_by": caller.key_id}
            return await queries.decide(tx, proposal, columns)
        return await publish.publish(tx, resources, proposal, caller.key_id, reason)


async def store(
    tx: RecordTransaction,
    resources: Resources,
    scope: Scope,
    run_id: str,
    name: DreamPass,
    drafts: Sequence[ProposalDraft],
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Store what a pass proposes, and publish it if the setting says so.

    Return how many were proposed and published, and what was left out, with the reason.
    """
    counts: dict[str, int] = {}
    skipped: list[dict[str, Any]] = []
    for position, draft in enumerate(drafts):
        code = await _reason_against(tx, scope, draft)
        if code is None:
            await queries.delete_open(tx, scope, draft.name)
            proposal = await queries.insert_open(tx, scope, run_id, name, draft)
            action = "skill_proposed"
            if resources.settings.skill_publish_proposals:
                await publish.publish(tx, resources, proposal, _DREAM, None)
                action = "skill_published"
            counts[action] = counts.get(action, 0) + 1
        else:
            skipped.append({"code": code, "kind": "skill", "index": position})
    return counts, skipped


async def _reason_against(tx: Transaction, scope: Scope, draft: ProposalDraft) -> RejectionCode | None:
    await skill_queries.lock_scope(tx, scope)
    versions = await skill_queries.lock_existing(tx, set(draft.based_on))
    named = await skill_queries.lock(tx, scope, draft.name)
    if versions != draft.based_on or (named is not None and named.id not in draft.based_on):
        return RejectionCode.CHANGED_MEANWHILE
    refused = await queries.list_refused(tx, scope, draft.name)
    if any(proposal.based_on == draft.based_on for proposal in refused):
        return RejectionCode.UNDONE_BEFORE
    return None


async def take_back(tx: RecordTransaction, resources: Resources, run_id: str) -> UndoneProposals:
    """Undo what a run proposed about skills, the latest first."""
    undone = UndoneProposals()
    for proposal in await queries.lock_of_run(tx, run_id):
        if proposal.state not in {ProposalState.OPEN, ProposalState.PUBLISHED}:
            continue
        reason = await publish.take_back(tx, resources, proposal)
        if reason is None:
            undone.undone.append(proposal.name)
        else:
            undone.kept.append({"name": proposal.name, "reason": reason})
    return undone
