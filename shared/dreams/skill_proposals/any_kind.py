"""Proposals of every kind under one roof: those of memories, and those that dreams make about skills.

A list has either: those of memories, or with the kind `skill` those about skills. They stand in tables of
their own, and no page has to be put together from both.
"""

from datetime import datetime
from typing import Any

from shared.dreams.skill_proposals import decide as decide_skill
from shared.dreams.skill_proposals import proposal as skill_proposal
from shared.dreams.skill_proposals.proposal import SkillProposal
from shared.foundation import errors, validation
from shared.foundation.scope import Caller, Scope
from shared.lifecycle import decide_proposal
from shared.lifecycle.settle_proposal import Decision
from shared.memory.longterm.memory import MAX_CONTENT, DecidedBy
from shared.memory.proposals.proposal import MAX_REASON, Proposal, ProposalState
from shared.platform.idempotency.idempotent import IdempotencyKey
from shared.platform.resources import Resources

SKILL = "skill"
_STATES = {
    skill_proposal.ProposalState.OPEN: ProposalState.HELD,
    skill_proposal.ProposalState.PUBLISHED: ProposalState.APPROVED,
    skill_proposal.ProposalState.REFUSED: ProposalState.REFUSED,
    skill_proposal.ProposalState.WITHDRAWN: ProposalState.EXPIRED,
}
_SKILL_STATES = {state: skill_state for skill_state, state in _STATES.items()}


async def list_proposals(
    resources: Resources,
    caller: Caller,
    scope: Scope,
    kind: str | None,
    state: ProposalState | None,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[Proposal | SkillProposal]:
    """Return the proposals that a scope sees, newest first: of memories or, with that kind, of skills."""
    if kind == SKILL:
        skill_state = _SKILL_STATES[state] if state else None
        return [*await decide_skill.list_proposals(resources, scope, skill_state, limit, after)]
    return [*await decide_proposal.list_proposals(resources, caller, scope, kind, state, limit, after)]


async def get(resources: Resources, caller: Caller, proposal_id: str) -> dict[str, Any]:
    """Return a proposal as JSON. Raises errors.NotFound if the caller sees none."""
    found = await decide_proposal.find(resources, caller, proposal_id)
    return to_json(found or await decide_skill.get(resources, caller, proposal_id))


async def decide(
    resources: Resources,
    caller: Caller,
    proposal_id: str,
    edited: str | None,
    reason: str | None,
    key: IdempotencyKey | None = None,
    *,
    is_approved: bool,
) -> dict[str, Any]:
    """Approve or refuse a proposal, with another text if it is `edited`, and return it as JSON.

    Raises errors.Invalid for a text of no memory, for one of a refusal, and for one of a skill; otherwise
    errors as `decide_proposal.decide` and `skill_proposals.decide.decide` do.
    """
    if reason is not None:
        validation.check_text(reason, "reason", MAX_REASON)
    if edited is not None:
        validation.check_text(edited, "edited", MAX_CONTENT)
        if not is_approved:
            raise errors.Invalid("edited", "is for the action 'approve'")
    if await decide_proposal.find(resources, caller, proposal_id) is not None:
        decision = Decision(is_approved, caller.key_id, DecidedBy.CALLER, reason=reason, edited=edited)
        return await decide_proposal.decide(resources, caller, proposal_id, decision, key)
    if edited is not None:
        await decide_skill.get(resources, caller, proposal_id)
        raise errors.Invalid("edited", "is not for proposals of the kind 'skill'")
    choice = decide_skill.Decision.PUBLISH if is_approved else decide_skill.Decision.REFUSE
    return to_json(await decide_skill.decide(resources, caller, proposal_id, choice, reason))


def to_json(proposal: Proposal | SkillProposal) -> dict[str, Any]:
    """Return a proposal of any kind as the API does."""
    if isinstance(proposal, Proposal):
        return proposal.to_json()
    fields = proposal.model_dump(mode="json", include=set(_SHARED_FIELDS))
    return fields | {
        "kind": SKILL,
        "text": proposal.content,
        "state": _STATES[proposal.state],
        "evidence": [{"session_id": session_id} for session_id in proposal.session_ids],
        "skill": proposal.model_dump(mode="json", by_alias=True, include=set(_SKILL_FIELDS)),
    }


_SHARED_FIELDS = ("id", "agent_id", "user_id", "created_at", "decided_by", "decided_at", "reason")
_SKILL_FIELDS = ("name", "summary", "replaces", "run_id", "pass_name")
