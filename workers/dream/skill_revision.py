"""Passes `consolidate_skills` and `optimise_skills`: propose to join skills, and to write some again.

A model is shown whole skills or none: one that does not fit into the prompt is left alone, and so is one with
files, which no prompt can show. What a pass has reviewed, it reviews again only after a change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import ValidationError

from shared.conversation.feedback.feedback_signal import FeedbackSignal, SignalType
from shared.dreams.passes import skills
from shared.dreams.passes.session_evaluation import Evaluation, Quality
from shared.dreams.passes.skills import Material, SkillPlan
from shared.dreams.runs import unread_signal_queries
from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.dreams.skill_proposals import queries as proposal_queries
from shared.dreams.skill_proposals.proposal import ProposalDraft
from shared.dreams.verification.rejection import REPAIRABLE, Rejection, RejectionCode, item_reference
from shared.foundation import errors, prompt_size
from shared.foundation.prompt_safety import indented, single_line
from shared.memory.skills import queries as skill_queries
from shared.memory.skills import use_queries
from shared.memory.skills.skill import Skill
from workers.passes import parts
from workers.passes.parts import Answers
from workers.passes.pass_context import PassContext

CONSOLIDATION, OPTIMISATION = "skill-consolidation", "skill-optimisation"
_AGE = timedelta(days=30)
_SPARSE_CHARS = 200
_SPARSE_AGE = timedelta(days=7)
_MAX_COMPANIONS = 3
_NAMED_TWICE = "another skill of this run has its name"
_NEGATIVE = (SignalType.CORRECTION, SignalType.USER_THUMBS_DOWN, SignalType.SESSION_SUMMARY)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The skills of a scope, how they were used, and the signals of sessions in which they were."""

    skills: list[Skill]
    reviewed: Mapping[str, int]
    uses: Mapping[str, int]
    sessions: Mapping[str, set[str]]
    signals: list[FeedbackSignal] = field(default_factory=list)

    @property
    def changed(self) -> list[Skill]:
        """The skills that the pass has not reviewed in their present version."""
        return [skill for skill in self.skills if self.reviewed.get(skill.id) != skill.version]

    def lines_of(self, skill: Skill) -> list[str]:
        """Return a skill as the model is shown it: its use, what went wrong with it, its whole content."""
        notes = [f"used {self.uses.get(skill.id, 0)} times in 30 days"]
        companions = [other.name for other in self.skills if self._is_companion(skill, other)]
        notes += [f"used together with {', '.join(companions[:_MAX_COMPANIONS])}"] if companions else []
        notes += ["sparse"] if is_sparse(skill) else []
        failures = [
            f"  ! [{signal.type}] {single_line(signal.detail or signal.summary)}"
            for signal in self.signals
            if signal.session_id in self.sessions.get(skill.id, ())
        ]
        head = f"## {skill.name}: {single_line(skill.summary)} ({'; '.join(notes)})"
        return [head, *failures, indented(skill.content.strip("\r\n")), ""]

    def _is_companion(self, skill: Skill, other: Skill) -> bool:
        shared = self.sessions.get(skill.id, set()) & self.sessions.get(other.id, set())
        return other.id != skill.id and bool(shared)


def is_sparse(skill: Skill) -> bool:
    """Tell whether a skill says little, and was not only just begun."""
    return len(skill.content) < _SPARSE_CHARS and datetime.now(UTC) - skill.created_at > _SPARSE_AGE


async def consolidate(context: PassContext) -> Outcome:
    """Propose to join skills that belong together."""
    inputs = await _load_inputs(context)
    if len(inputs.skills) < 2 or not inputs.changed:
        raise PassSkipped("there are fewer than two skills, or none has changed since the last run")
    return await _ask(context, CONSOLIDATION, inputs, inputs.skills)


async def optimise(context: PassContext) -> Outcome:
    """Propose better wordings of skills that were used where something went wrong, and of sparse ones."""
    inputs = await _load_inputs(context)
    settings, scope = context.resources.settings, context.run.scope
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        unread = await unread_signal_queries.list_unread(
            tx, scope, context.name, _NEGATIVE, days=_AGE.days, limit=settings.dream_max_signals
        )
    failures = [signal for signal in unread if _is_failure(signal)]
    bad_sessions = {signal.session_id for signal in failures}
    at_risk = [
        skill for skill in inputs.skills if not bad_sessions.isdisjoint(inputs.sessions.get(skill.id, ()))
    ]
    sparse = [skill for skill in inputs.changed if is_sparse(skill) and skill not in at_risk]
    if not at_risk and not sparse:
        raise PassSkipped("no skill was used where something went wrong, and none is sparse")
    shown = _Inputs(inputs.skills, inputs.reviewed, inputs.uses, inputs.sessions, failures)
    outcome = await _ask(context, OPTIMISATION, shown, [*at_risk, *sparse])
    outcome.read_signal_ids = [signal.id for signal in unread]
    outcome.shown_signals = failures
    outcome.shown_sessions |= bad_sessions
    return outcome


def _is_failure(signal: FeedbackSignal) -> bool:
    """Tell whether a signal says that something went wrong; an evaluation says how good a session was."""
    if signal.type is not SignalType.SESSION_SUMMARY:
        return True
    try:
        evaluation = Evaluation.model_validate_json(signal.detail or "")
    except ValidationError:
        return False
    return evaluation.overall_quality is not Quality.GOOD


async def _load_inputs(context: PassContext) -> _Inputs:
    scope = context.run.scope
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        found = await skill_queries.list_of_scope(tx, scope)
        whole = [skill for skill in found if not skill.files]
        ids = [skill.id for skill in whole]
        return _Inputs(
            whole,
            await proposal_queries.list_reviewed(tx, scope, context.name),
            await use_queries.count_uses(tx, ids, _AGE),
            await use_queries.list_sessions(tx, ids, _AGE),
        )


@dataclass(frozen=True, slots=True)
class _Reviewed:
    """What a model proposed about skills that it was shown: all of it, and what of it may be proposed."""

    proposed: Sequence[SkillPlan]
    accepted: Sequence[SkillPlan]
    rejections: Sequence[dict[str, Any]]


async def _ask(context: PassContext, directive: str, inputs: _Inputs, offered: Sequence[Skill]) -> Outcome:
    # The other half has room for the reasons of a repair.
    max_tokens = await context.free_tokens(directive) // 2
    names = {skill.name for skill in inputs.skills}

    def tokens_of(skill: Skill) -> int:
        return prompt_size.tokens_of("\n".join(inputs.lines_of(skill)))

    async def ask(part: list[Skill]) -> _Reviewed:
        text = "\n".join(line for skill in part for line in inputs.lines_of(skill))
        shown = {skill.name: skill for skill in part}
        material = Material(shown, names, text, may_deny=directive == OPTIMISATION)
        return await _review(context, directive, material)

    fitting = [skill for skill in offered if tokens_of(skill) <= max_tokens]
    if not fitting:
        raise PassSkipped("no skill fits whole into a prompt")
    batches = prompt_size.split(fitting, tokens_of, max_tokens)
    answers = await parts.ask_in_parts(context, batches, ask, _inputs_of)
    answers.require_usable()
    return _outcome(answers)


def _inputs_of(items: Sequence[Skill]) -> dict[str, Any]:
    return {skill.id: skill.version for skill in items}


async def _review(context: PassContext, directive: str, material: Material) -> _Reviewed:
    """Ask about the skills of one prompt, and once more for what of the answer can be repaired."""
    proposed = skills.parse((await context.ask(directive, material.text)).text)
    accepted, rejections = skills.check(proposed, material)
    first = _Reviewed(proposed.plans, accepted, [*map(_to_json, rejections)])
    repairable = [rejection for rejection in rejections if rejection.code in REPAIRABLE]
    if not repairable:
        return first
    prompt_text = f"{material.text}\n\n{_repair_text(proposed.plans, repairable)}"
    try:
        repaired = skills.parse((await context.ask(directive, prompt_text)).text)
    except (errors.InvalidModelReply, errors.Unavailable, PassSkipped) as error:
        failed = Rejection(RejectionCode.REPAIR_FAILED, item_reference("repair", ()), str(error))
        return replace(first, rejections=[*first.rejections, _to_json(failed)])
    # Its deletions are ignored: it was only asked for skills.
    mended, rejected = skills.check(replace(repaired, deletions=()), material.without(accepted))
    return _Reviewed(
        [*proposed.plans, *repaired.plans],
        [*accepted, *mended],
        [*first.rejections, *map(_to_json, rejected)],
    )


def _repair_text(plans: Sequence[SkillPlan], repairable: Sequence[Rejection]) -> str:
    lines = [
        f"- {plans[rejection.item['index']].name}: {rejection.detail}: {', '.join(rejection.words)}"
        for rejection in repairable
    ]
    head = "These skills were refused. Mend what is said of each and write it anew, whole, or leave it out:"
    return "\n".join([head, *lines])


def _to_json(rejection: Rejection) -> dict[str, Any]:
    words = {"words": list(rejection.words)} if rejection.words else {}
    return {"code": rejection.code, "detail": rejection.detail, **words, **rejection.item}


def _outcome(answers: Answers[Skill, _Reviewed]) -> Outcome:
    outcome = Outcome(
        inputs=_inputs_of(answers.items),
        proposed=[],
        reviewed_skills=_inputs_of(answers.items),
        shown_skills=_inputs_of(answers.items),
        has_more=answers.has_more,
    )
    named: set[str] = set()
    for part, reviewed in answers.usable:
        offered = {skill.name: skill for skill in part}
        outcome.proposed += [
            {"name": plan.name, "summary": plan.summary, "replaces": list(plan.replaces)}
            for plan in reviewed.proposed
        ]
        outcome.rejections += reviewed.rejections
        for plan in reviewed.accepted:
            if plan.name in named:  # a part before this one has given the name away
                twice = Rejection(RejectionCode.DUPLICATE, item_reference("skill", ()), _NAMED_TWICE)
                outcome.rejections.append(_to_json(twice))
            else:
                outcome.skill_proposals.append(_draft(plan, offered))
            named.add(plan.name)
    outcome.rejections += answers.rejections(lambda batch: {"kind": "skills", "count": len(batch)})
    return outcome


def _draft(plan: SkillPlan, offered: Mapping[str, Skill]) -> ProposalDraft:
    names = [name for name in dict.fromkeys([plan.name, *plan.replaces]) if name in offered]
    based_on = {offered[name].id: offered[name].version for name in names}
    replaces = tuple(name for name in plan.replaces if name != plan.name)
    return ProposalDraft(plan.name, plan.summary, plan.content, replaces, based_on, ())
