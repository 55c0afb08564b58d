"""Store skills under their names, each write as a new version."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.foundation import errors, versions
from shared.foundation.config import Settings
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.foundation.stages import SUMMARIZE_SKILL, Pipeline, RecordKind
from shared.foundation.versions import ABSENT, Expected
from shared.infra import language_model
from shared.infra.postgres import exact_scope
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.memory.skills import file_queries, index_document, queries
from shared.memory.skills.record_type import SKILL
from shared.memory.skills.skill import (
    FrontMatter,
    Skill,
    SkillDraft,
    SkillWriter,
    SummaryOrigin,
    beginning_of,
    check_name,
    check_summary,
)
from shared.memory.skills.table import skill as skill_table
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

_MAX_ATTEMPTS = 5


async def put(
    resources: Resources,
    scope: Scope,
    name: str,
    draft: SkillDraft,
    origin: Origin,
    expected: Expected | None = None,
) -> Skill:
    """Store a skill under a name of exactly this scope, and return it.

    What the draft leaves open stays as it is. Raises errors.PreconditionFailed unless the version that stands
    there is `expected`, and errors.LimitReached if there are as many skills as there may be.
    """
    check_name(name)
    checked = draft.validated()
    async with resources.transaction(scope.tenant) as tx:
        await queries.lock_scope(tx, scope)
        skill = await store(
            tx, resources.settings, scope, name, checked, SkillWriter.CALLER, origin, expected
        )
        await index(tx, resources.settings, [skill])
    return skill


async def store(
    tx: Transaction,
    settings: Settings,
    scope: Scope,
    name: str,
    draft: SkillDraft,
    written_by: SkillWriter,
    origin: Origin,
    expected: Expected | None = None,
) -> Skill:
    """Store a validated draft in a scope whose skills are locked, and return the skill. Raises as `put`."""
    for _ in range(_MAX_ATTEMPTS):
        before = await queries.lock(tx, scope, name)
        versions.check(f"skill '{name}'", before.version if before else ABSENT, expected)
        columns = {"name": name, **_columns(draft, before, written_by)}
        if before is not None:
            return await _replace(tx, settings, before, columns, origin)
        await _require_room(tx, settings, scope)
        if (created := await queries.insert_new(tx, scope, columns, origin)) is not None:
            return created
    raise errors.Busy("others keep writing and deleting under this name")


async def give_summary(tx: Transaction, settings: Settings, skill: Skill, summary: str) -> Skill:
    """Give a locked skill the summary that a model wrote, as a new version, and return the skill."""
    written = {"summary": check_summary(summary), "summary_origin": SummaryOrigin.MODEL}
    searched = {"name": skill.name, "front_matter": skill.front_matter.to_json()}
    return await _replace(tx, settings, skill, searched | written, skill.origin)


async def _replace(
    tx: Transaction, settings: Settings, before: Skill, columns: Mapping[str, Any], origin: Origin
) -> Skill:
    skill = await queries.replace(tx, before, columns, origin)
    # Stored contexts repeat the text that was replaced.
    await idempotency_queries.erase_responses(tx, [skill.id])
    if await queries.prune_versions(tx, skill, settings.skill_max_versions):
        await file_queries.delete_unused(tx, skill.scope)
    return skill


async def _require_room(tx: Transaction, settings: Settings, scope: Scope) -> None:
    if await SKILL.count(tx, exact_scope(skill_table, scope)) >= settings.skill_max_per_scope:
        raise errors.LimitReached(
            f"there are {settings.skill_max_per_scope} skills, and no more may be added"
        )


def _columns(draft: SkillDraft, before: Skill | None, written_by: SkillWriter) -> dict[str, Any]:
    """Return the columns of a draft, completed by those of the skill that it replaces."""
    front_matter = draft.front_matter or _kept_front_matter(draft, before)
    kept_files = list(before.files) if before else []
    files = kept_files if draft.files is None else list(draft.files)
    kept_see_also = list(before.see_also) if before else []
    summary, summary_origin = _summary(draft, before)
    return {
        "content": draft.content,
        "summary": summary,
        "summary_origin": summary_origin,
        "see_also": kept_see_also if draft.see_also is None else list(draft.see_also),
        "front_matter": front_matter.to_json(),
        "files": [file.model_dump() for file in sorted(files, key=lambda file: file.path)],
        "origin": written_by,
    }


def _kept_front_matter(draft: SkillDraft, before: Skill | None) -> FrontMatter:
    """Return what the skill's SKILL.md said; a new summary takes the place of its description."""
    kept = before.front_matter if before else FrontMatter()
    return kept.model_copy(update={"description": None}) if draft.summary is not None else kept


def _summary(draft: SkillDraft, before: Skill | None) -> tuple[str, SummaryOrigin]:
    if draft.summary is not None:
        return draft.summary, draft.summary_origin
    if before is not None and (
        before.summary_origin is SummaryOrigin.CALLER or before.content == draft.content
    ):
        return before.summary, before.summary_origin
    return beginning_of(draft.content), SummaryOrigin.CONTENT


async def index(tx: RecordTransaction, settings: Settings, skills: Sequence[Skill]) -> None:
    """Let written skills be found after the commit, and be summarised if they came without a summary.

    A claim on the job of an earlier version becomes invalid. Without a model there is no summary.
    """
    if not skills:
        return
    without = {skill.id: skill.version for skill in skills if skill.summary_origin is SummaryOrigin.CONTENT}
    given = [skill.id for skill in skills if skill.id not in without]
    await job_queries.cancel(tx, RecordKind.SKILL, given, Pipeline.SKILL_SUMMARY)
    if language_model.is_configured(settings):
        await job_queries.enqueue(tx, tx.tenant, RecordKind.SKILL, SUMMARIZE_SKILL, without)
    await tx.index([index_document.document(skill) for skill in skills])
