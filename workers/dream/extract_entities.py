"""Pass `extract_entities`: draw the graph of what turns, and facts mined out of them, say."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shared.conversation.turns.turn import Turn
from shared.dreams.graph import queries as graph_queries
from shared.dreams.runs import unread_turn_queries
from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.dreams.verification import graph_check, graph_plan
from shared.dreams.verification.graph_changes import GraphChanges
from shared.dreams.verification.graph_check import Checked, Shown
from shared.dreams.verification.graph_plan import GraphPlan, Source
from shared.foundation import errors, prompt_size
from shared.foundation.origin import Trust
from shared.foundation.prompt_safety import single_line
from shared.memory.graph import match_queries
from shared.memory.graph.entity import Entity
from shared.memory.longterm.memory import Memory
from shared.search.text import tokenizer
from workers.passes import parts, turn_parts
from workers.passes.pass_context import PassContext

DIRECTIVE = "graph"
_MAX_FACTS = 500
_MAX_KNOWN = 200


@dataclass(slots=True)
class _Found:
    """What the model proposed so far, and what of it holds."""

    plans: list[GraphPlan] = field(default_factory=list)
    checked: Checked = field(default_factory=Checked)

    def add(self, plan: GraphPlan, shown: Shown) -> None:
        self.plans.append(plan)
        found = graph_check.check(plan, shown)
        self.checked.entities += found.entities
        self.checked.triples += found.triples
        self.checked.rejections += found.rejections


async def run(context: PassContext) -> Outcome:
    """Ask the model about turns and facts that this pass has not read."""
    scope, limit = context.run.scope, context.resources.settings.dream_max_turns
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        turns, has_more = await unread_turn_queries.list_oldest_unread(tx, scope, context.name, limit)
        facts = await graph_queries.list_unextracted(tx, scope, _MAX_FACTS + 1)
    if not turns and not facts:
        raise PassSkipped("there are no turns and no facts since the last run of this pass")
    max_tokens = await context.free_tokens(DIRECTIVE) // 2
    found = _Found()
    outcome = Outcome(has_more=has_more or len(facts) > _MAX_FACTS, graph=GraphChanges())
    await _read_turns(context, turns, max_tokens, found, outcome)
    await _read_facts(context, facts[:_MAX_FACTS], max_tokens, found, outcome)
    return _completed(outcome, found)


async def _read_turns(
    context: PassContext, turns: Sequence[Turn], max_tokens: int, found: _Found, outcome: Outcome
) -> None:
    if not turns:
        return
    texts: dict[Source, str] = {
        (turn.session_id, turn.seq): f"{turn.speaker or ''} {turn.content}" for turn in turns
    }
    trusts: dict[Source, Trust] = {(turn.session_id, turn.seq): turn.origin.trust for turn in turns}

    async def ask(turns_text: str) -> None:
        await _ask(context, turns_text, Shown(texts, trusts=trusts), found, max_tokens)

    answers = await turn_parts.ask_about_turns(context, turns, max_tokens, ask)
    answers.require_usable()
    outcome.inputs |= turn_parts.inputs_of(answers.items)
    outcome.turns = turn_parts.turn_keys(answers.items)
    outcome.shown_turns = list(turns)
    outcome.shown_sessions = {turn.session_id for turn in turns}
    outcome.rejections += answers.rejections(turn_parts.name_part)
    outcome.has_more |= answers.has_more


async def _read_facts(
    context: PassContext, facts: Sequence[Memory], max_tokens: int, found: _Found, outcome: Outcome
) -> None:
    if not facts or not context.has_time():
        outcome.has_more |= bool(facts)
        return
    texts: dict[Source, str] = {(fact.id, None): fact.content for fact in facts}
    trusts: dict[Source, Trust] = {(fact.id, None): fact.origin.trust for fact in facts}

    async def ask(part: list[Memory]) -> None:
        lines = [f"- [ID:{fact.id}] {single_line(fact.content)}" for fact in part]
        shown = Shown(texts, trusts=trusts)
        await _ask(context, "\n".join(["Facts:", *lines]), shown, found, max_tokens)

    def tokens_of(fact: Memory) -> int:
        return min(max_tokens, prompt_size.tokens_of(fact.content) + 10)

    turn_inputs = dict(outcome.inputs)
    fact_parts = prompt_size.split(facts, tokens_of, max_tokens)
    try:
        answers = await parts.ask_in_parts(
            context, fact_parts, ask, lambda part: turn_inputs | _inputs_of(part)
        )
    except (errors.Unavailable, PassSkipped):
        if not outcome.turns:
            raise
        outcome.has_more = True  # what was found in the turns is paid for
        return
    outcome.inputs |= _inputs_of(answers.items)
    outcome.shown_memories = {fact.id for fact in facts}
    if outcome.graph is not None:
        # A part without a usable answer is not asked again either: its facts may be beyond the model.
        refused = [fact for part, _ in answers.refused for fact in part]
        outcome.graph.extracted = {fact.id: fact.content_version for fact in [*answers.items, *refused]}
    outcome.rejections += answers.rejections(_name_part)
    outcome.has_more |= not answers.is_complete


def _inputs_of(facts: Sequence[Memory]) -> dict[str, Any]:
    return {"memories": {fact.id: fact.version for fact in facts}}


def _name_part(facts: Sequence[Memory]) -> dict[str, Any]:
    return {"kind": "memories", "ids": [fact.id for fact in facts][:50]}


async def _ask(context: PassContext, prompt_text: str, shown: Shown, found: _Found, max_tokens: int) -> None:
    """Ask about turns or facts, beside the known entities that they name, and check the reply."""
    known = await _known_entities(context, prompt_text)
    labelled = {f"e{number}": entity for number, entity in enumerate(known, start=1)}
    lines = prompt_size.fitting((_entity_line(*item) for item in labelled.items()), max_tokens)
    shown_entities = dict(list(labelled.items())[: len(lines)])
    listed = "\n".join(["Known entities:", *(lines or ["- none"]), "", prompt_text])
    reply = await context.ask(DIRECTIVE, listed)
    found.add(graph_plan.parse(reply.text), replace(shown, entities=shown_entities))


async def _known_entities(context: PassContext, prompt_text: str) -> list[Entity]:
    """Return the entities that a prompt names; the run sees the common ones and those of its user."""
    words = tokenizer.words(prompt_text)
    async with context.resources.postgres.for_tenant(context.run.tenant) as tx:
        return await match_queries.list_named_in(tx, context.run.scope, words, None, _MAX_KNOWN)


def _entity_line(label: str, entity: Entity) -> str:
    aliases = f" (aliases: {', '.join(entity.aliases)})" if entity.aliases else ""
    return f"- [{label}] {entity.type}: {single_line(entity.name + aliases)}"


def _completed(outcome: Outcome, found: _Found) -> Outcome:
    changes = outcome.graph or GraphChanges()
    changes.entities, changes.triples = found.checked.entities, found.checked.triples
    outcome.graph = changes
    outcome.proposed = [
        *(entity.name for plan in found.plans for entity in plan.entities),
        *(
            " ".join([triple.subject, triple.predicate, triple.object or triple.literal or ""])
            for plan in found.plans
            for triple in plan.triples
        ),
    ]
    outcome.rejections += [
        {"code": item.code, "detail": item.detail, **item.item} for item in found.checked.rejections
    ]
    return outcome
