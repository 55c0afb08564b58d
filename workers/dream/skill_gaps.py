"""Pass `detect_skill_gaps`: propose a skill for what users ask for in several sessions."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import FeedbackSignal
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import skills
from shared.dreams.passes.recurring_requests import RecurringRequest, find_recurring, recurring_terms
from shared.dreams.passes.skills import Material, SkillPlan
from shared.dreams.runs import request_queries, unread_turn_queries, unread_turns
from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.dreams.skill_proposals.proposal import ProposalDraft
from shared.foundation import prompt_size
from shared.foundation.prompt_safety import single_line
from shared.memory.skills import queries as skill_queries
from shared.memory.skills.skill import Skill
from workers.passes import turn_parts
from workers.passes.pass_context import PassContext

DIRECTIVE = "skill-gaps"
_AGE = timedelta(days=30)
_MAX_SESSIONS = 500
_MAX_TURNS_PER_SESSION = 40
_MAX_REQUESTS = 10


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What the pass reads: unread turns, recurring requests with the turns of their sessions, and skills."""

    unread: list[Turn]
    has_more: bool
    requests: list[RecurringRequest]
    terms: list[str]
    turns: list[Turn]
    existing: list[Skill]
    signals: list[FeedbackSignal]


async def run(context: PassContext) -> Outcome:
    """Ask the model about the requests that came up in several sessions, one of them lately."""
    inputs = await _load_inputs(context)
    read_turns = turn_parts.turn_keys(inputs.unread)
    if not inputs.requests:
        if not inputs.has_more:
            raise PassSkipped("no request came up in several sessions since the last run of this pass")
        return Outcome(inputs=turn_parts.inputs_of(inputs.unread), turns=read_turns, has_more=True)
    max_tokens = await context.free_tokens(DIRECTIVE) // 2
    turns = unread_turns.last_fitting(inputs.turns, max_tokens) or inputs.turns[-1:]
    context.inputs = turn_parts.inputs_of(inputs.unread)
    prompt_text = _prompt_text(inputs, turns, max_tokens)
    reply = await context.ask(DIRECTIVE, prompt_text)
    return _outcome(inputs, turns, prompt_text, reply.text)


async def _load_inputs(context: PassContext) -> _Inputs:
    settings, scope = context.resources.settings, context.run.scope
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        unread, has_more = await unread_turn_queries.list_oldest_unread(
            tx, scope, context.name, settings.dream_max_turns
        )
        first = await request_queries.list_first_requests(tx, scope, _AGE, _MAX_SESSIONS)
        lately = {turn.session_id for turn in unread}
        requests = [item for item in find_recurring(first) if not lately.isdisjoint(item.session_ids)]
        requests = requests[:_MAX_REQUESTS]
        session_ids = sorted({session_id for item in requests for session_id in item.session_ids})
        turns = [
            turn
            for session_id in session_ids
            for turn in await turn_queries.list_last(tx, session_id, _MAX_TURNS_PER_SESSION)
        ]
        existing = await skill_queries.list_of_scope(tx, scope) if requests else []
        signals = await feedback_report.recent(
            tx, scope, days=settings.dream_signal_days, limit=settings.dream_max_signals
        )
    shown = [signal for signal in signals if signal.session_id in session_ids]
    return _Inputs(unread, has_more, requests, recurring_terms(first), turns, existing, shown)


def _prompt_text(inputs: _Inputs, turns: list[Turn], max_tokens: int) -> str:
    lists = (
        ("Requests that came up in several sessions:", [_request_line(item) for item in inputs.requests]),
        ("Recurring terms:", [", ".join(inputs.terms)] if inputs.terms else []),
        ("Skills that exist:", [f"- {skill.name}: {skill.summary}" for skill in inputs.existing]),
        ("Feedback:", [_signal_line(signal) for signal in inputs.signals]),
    )
    lines: list[str] = []
    for title, items in lists:
        lines += [title, *(prompt_size.fitting(items, max_tokens // 4) or ["- none"]), ""]
    return "\n".join([*lines, unread_turns.render_turns(turns, max_tokens)])


def _request_line(request: RecurringRequest) -> str:
    sessions = ", ".join(request.session_ids[:5])
    return f"- in {len(request.turns)} sessions ({sessions}): {single_line(request.turns[0].content)[:300]}"


def _signal_line(signal: FeedbackSignal) -> str:
    return f"- [{signal.type}] session {signal.session_id}: {single_line(signal.detail or signal.summary)}"


def _outcome(inputs: _Inputs, turns: list[Turn], prompt_text: str, reply: str) -> Outcome:
    proposed = skills.parse(reply)
    existing = {skill.name for skill in inputs.existing}
    # Nothing is offered for a change: this pass may only add.
    accepted, rejections = skills.check(proposed, Material({}, existing, prompt_text, may_add=True))
    contents = [skill.content for skill in inputs.existing]
    new: list[SkillPlan] = []
    for plan in accepted:
        if not skills.says_the_same(plan, [*contents, *(other.content for other in new)]):
            new.append(plan)
    shown = sorted({turn.session_id for turn in turns})
    return Outcome(
        inputs=turn_parts.inputs_of(inputs.unread),
        proposed=[{"name": plan.name, "summary": plan.summary} for plan in proposed.plans],
        rejections=[_to_json(rejection.code, rejection.item) for rejection in rejections]
        + [_to_json("duplicate", {"kind": "skill"}) for _ in accepted[len(new) :]],
        skill_proposals=[_draft(plan, shown) for plan in new],
        turns=turn_parts.turn_keys(inputs.unread),
        shown_sessions={*shown, *(item for request in inputs.requests for item in request.session_ids)},
        shown_skills={skill.id: skill.version for skill in inputs.existing},
        shown_turns=turns,
        shown_signals=inputs.signals,
        has_more=inputs.has_more,
    )


def _draft(plan: SkillPlan, shown: list[str]) -> ProposalDraft:
    """Return the proposal of a plan, which names the sessions that it comes from if the model did."""
    named = tuple(session_id for session_id in plan.session_ids if session_id in shown)
    return ProposalDraft(plan.name, plan.summary, plan.content, (), {}, named or tuple(shown))


def _to_json(code: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"code": code, **item}
