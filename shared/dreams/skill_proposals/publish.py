"""Publish a proposal as a skill, and take back what was published.

A proposal was made from whole skills in certain versions. If one of them has changed since, publishing it
would lose the change: then it is refused. The skills as they were before are kept with the proposal, as long
as dream runs are, so that undo can bring them back.
"""

from typing import Any

from shared.dreams.skill_proposals import queries
from shared.dreams.skill_proposals.proposal import ProposalState, SkillProposal
from shared.foundation import errors
from shared.foundation.config import Settings
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle import deletion
from shared.lifecycle.deletion import Deletion
from shared.memory.skills import file_queries, write
from shared.memory.skills import queries as skill_queries
from shared.memory.skills.skill import Skill, SkillDraft, SkillWriter, SummaryOrigin
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

_CHANGED = "the skills that it was made from have changed since"


async def publish(
    tx: RecordTransaction,
    resources: Resources,
    proposal: SkillProposal,
    decided_by: str,
    reason: str | None,
) -> SkillProposal:
    """Store the skill of an open proposal, and delete those that it stands for.

    Raises errors.Conflict if one of them has changed, or if another skill has the name by now.
    """
    scope = proposal.scope
    await skill_queries.lock_scope(tx, scope)
    before = await skill_queries.lock(tx, scope, proposal.name)
    replaced = await _lock_all(tx, scope, [name for name in proposal.replaces if name != proposal.name])
    found = [*([before] if before else []), *replaced]
    if {skill.id: skill.version for skill in found} != proposal.based_on:
        raise errors.Conflict(_CHANGED)
    settings, draft = resources.settings, _draft(proposal, found)
    origin = Origin.derived(skill.origin.trust for skill in found)
    stored = await write.store(tx, settings, scope, proposal.name, draft, SkillWriter.DREAM, origin)
    skill = await _with_times(tx, stored, found)
    await write.index(tx, settings, [skill])
    columns = {
        "state": ProposalState.PUBLISHED,
        "reason": reason,
        "decided_by": decided_by,
        "published_version": skill.version,
        "before": [item.to_json() for item in found],
        "skill_ids": [skill.id],
    }
    # Before the others are deleted: whatever names one of them goes with it.
    decided = await queries.decide(tx, proposal, columns)
    await _delete(tx, resources, scope, replaced)
    return decided


async def _lock_all(tx: Transaction, scope: Scope, names: list[str]) -> list[Skill]:
    locked = [await skill_queries.lock(tx, scope, name) for name in sorted(names)]
    return [skill for skill in locked if skill is not None]


def _draft(proposal: SkillProposal, found: list[Skill]) -> SkillDraft:
    """Return the skill to store: it keeps what the skills that it was made from refer to."""
    gone = {proposal.name, *proposal.replaces}
    names = dict.fromkeys(name for skill in found for name in skill.see_also if name not in gone)
    return SkillDraft(
        content=proposal.content,
        summary=proposal.summary,
        summary_origin=SummaryOrigin.MODEL,
        see_also=tuple(names),
    ).validated()


async def _with_times(tx: Transaction, skill: Skill, found: list[Skill]) -> Skill:
    """Give a skill the earliest creation and the latest use of those that it was made from."""
    used = [item.last_used_at for item in found if item.last_used_at is not None]
    created_at = min([skill.created_at, *(item.created_at for item in found)])
    return await skill_queries.set_times(tx, skill, created_at, max(used, default=None))


async def _delete(tx: RecordTransaction, resources: Resources, scope: Scope, skills: list[Skill]) -> None:
    if not skills:
        return
    rows = Deletion(scope.tenant)
    await deletion.add_skills(tx, rows, [skill.searchable for skill in skills])
    await deletion.delete(tx, resources, rows)
    await file_queries.delete_unused(tx, scope)


async def take_back(tx: RecordTransaction, resources: Resources, proposal: SkillProposal) -> str | None:
    """Undo an open or published proposal; return why it was not undone, or None.

    It then stands for the restored skills: no later run proposes the same of them again.
    """
    columns: dict[str, Any] = {"state": ProposalState.WITHDRAWN, "published_version": None, "before": []}
    if proposal.state is not ProposalState.PUBLISHED:
        await queries.decide(tx, proposal, columns)
        return None
    scope = proposal.scope
    await skill_queries.lock_scope(tx, scope)
    skill = await skill_queries.lock(tx, scope, proposal.name)
    if skill is None or skill.version != proposal.published_version:
        return "it was changed since"
    before = [Skill.from_json(item, scope.tenant) for item in proposal.before]
    # Before the skill is deleted: whatever names it goes with it.
    await queries.decide(tx, proposal, columns | {"skill_ids": []})
    if all(item.name != proposal.name for item in before):
        await _delete(tx, resources, scope, [skill])
    stored = [await _restore(tx, resources.settings, scope, item) for item in before]
    restored = [item for item in stored if item is not None]
    await write.index(tx, resources.settings, restored)
    versions = {item.id: item.version for item in restored}
    await queries.decide(tx, proposal, {"based_on": versions, "skill_ids": list(versions)})
    return None


async def _restore(tx: Transaction, settings: Settings, scope: Scope, skill: Skill) -> Skill | None:
    """Store a skill as it was, and return it; None if another one has its name by now."""
    existing = await skill_queries.lock(tx, scope, skill.name)
    if existing is not None and existing.written_by is not SkillWriter.DREAM:
        return None
    draft = SkillDraft(
        content=skill.content,
        summary=skill.summary,
        summary_origin=skill.summary_origin,
        see_also=tuple(skill.see_also),
        front_matter=skill.front_matter,
        files=tuple(skill.files),
    )
    stored = await write.store(tx, settings, scope, skill.name, draft, skill.written_by, skill.origin)
    return await skill_queries.set_times(tx, stored, skill.created_at, skill.last_used_at)
