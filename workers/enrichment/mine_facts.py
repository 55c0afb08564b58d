"""Pass `mine_facts`: take what is worth knowing in another conversation out of the turns of users.

The model is shown the turns that this pass has not read, a few before them, and what is known already. Code
checks the form of its answer (`shared/dreams/verification/fact_check.py`), and a judge or signs decide what
of it is stored (`shared/verification/decision.py`).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from shared.conversation.turns import log_queries
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import fact_statements, facts
from shared.dreams.runs import unread_turn_queries
from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.dreams.verification.fact_check import ShownConversation
from shared.foundation import prompt_size
from shared.foundation.roles import Role
from shared.memory.longterm.memory import Memory
from shared.memory.proposals import hold
from shared.platform.agents import profile
from workers.enrichment import known_facts
from workers.enrichment.mined_facts import MinedFacts
from workers.passes import parts, turn_parts
from workers.passes.parts import Answers
from workers.passes.pass_context import PassContext

_EARLIER_TURNS = 6
"""Turns of a session that are shown before those to mine: to what else would "yes" be the answer?"""
_MAX_TURNS_IN_PART = 60
"""More turns have more facts than an answer has room for."""


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The turns to mine, sorted by session and number, and those before the first of each session."""

    turns: list[Turn]
    has_more: bool
    earlier: list[Turn]

    def before(self, part: Sequence[Turn]) -> list[Turn]:
        """Return the turns to show before those of a part, of each of its sessions."""
        first_seqs = {turn.session_id: turn.seq for turn in reversed(part)}
        shown: list[Turn] = []
        for session_id, first_seq in first_seqs.items():
            session_turns = [turn for turn in [*self.earlier, *self.turns] if turn.session_id == session_id]
            before = [turn for turn in session_turns if turn.seq < first_seq]
            shown += sorted(before, key=attrgetter("seq"))[-_EARLIER_TURNS:]
        return shown


async def run(context: PassContext) -> Outcome:
    """Ask the model about the turns of the scope that this pass has not read."""
    inputs = await _load_inputs(context)
    if not inputs.turns:
        raise PassSkipped("there are no turns that were not mined yet")
    if not any(turn.role is Role.USER for turn in inputs.turns):
        return _without_user_turns(inputs)
    mining = _Mining(context, inputs, await context.free_tokens(facts.DIRECTIVE))
    answers = await mining.ask_in_parts()
    answers.require_usable()
    return mining.outcome(answers)


def _without_user_turns(inputs: _Inputs) -> Outcome:
    """Let go of turns that tell no fact: an assistant's words count with the user's answer, if it comes."""
    return Outcome(
        inputs=turn_parts.inputs_of(inputs.turns),
        turns=turn_parts.turn_keys(inputs.turns),
        has_more=inputs.has_more,
    )


async def _load_inputs(context: PassContext) -> _Inputs:
    """Load the turns to mine. Raises PassSkipped if the agent's profile says that they are not mined."""
    scope, limit = context.run.scope, context.resources.settings.dream_max_turns
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        reason = await profile.reason_not_to_mine(tx, scope)
        if reason is not None:
            raise PassSkipped(reason)
        if await hold.is_full(tx, context.resources.settings, scope):
            raise PassSkipped("too many proposals wait for a decision", has_more=True)
        turns, has_more = await unread_turn_queries.list_oldest_unread(
            tx, scope, context.name, limit, unread_turn_queries.is_mineable()
        )
        first_seqs = {turn.session_id: turn.seq for turn in reversed(turns)}
        earlier = await log_queries.list_before(tx, first_seqs, _EARLIER_TURNS)
    return _Inputs(turns, has_more, [turn for turn in earlier if turn.role in (Role.USER, Role.ASSISTANT)])


class _Mining:
    """Asks about one part of the turns after the other, and collects the facts."""

    def __init__(self, context: PassContext, inputs: _Inputs, free_tokens: int) -> None:
        self._context = context
        self._inputs = inputs
        self._found = MinedFacts(context.run.scope)
        self._shown_memories: set[str] = set()
        # Half of the room is for turns, a quarter for what is known; the rest is for the turns before.
        self._turn_tokens = free_tokens // 2
        self._known_tokens = free_tokens // 4
        self._earlier_tokens = free_tokens // 8

    async def ask_in_parts(self) -> Answers[Turn, ShownConversation]:
        """Ask about all turns, and return the parts with what the model was shown about each."""
        least_tokens = self._turn_tokens // _MAX_TURNS_IN_PART

        def tokens_of(turn: Turn) -> int:
            return min(self._turn_tokens, max(least_tokens, facts.tokens_of_turn(turn)))

        turn_lists = prompt_size.split(self._inputs.turns, tokens_of, self._turn_tokens)
        return await parts.ask_in_parts(self._context, turn_lists, self._ask, turn_parts.inputs_of)

    def outcome(self, answers: Answers[Turn, ShownConversation]) -> Outcome:
        """Return what follows from all parts together."""
        turns, shown_turns = answers.items, self._shown_turns(answers)
        outcome = self._found.outcome()
        outcome.inputs = turn_parts.inputs_of(turns)
        outcome.rejections += answers.rejections(turn_parts.name_part)
        outcome.turns = turn_parts.turn_keys(turns)
        outcome.shown_memories = self._shown_memories
        outcome.shown_sessions = {turn.session_id for turn in shown_turns}
        outcome.shown_turns = shown_turns
        outcome.has_more = self._inputs.has_more or answers.has_more
        return outcome

    async def _ask(self, part: list[Turn]) -> ShownConversation:
        known = await known_facts.list_known(self._context.resources, self._context.run.scope, part)
        shown = self._shown(part, known)
        self._shown_memories |= {memory.id for memory in known} & shown.memories.keys()
        reply = await self._context.ask(facts.DIRECTIVE, facts.render_prompt(shown, self._turn_tokens))
        # Long turns take seconds to read: other work of the process goes on meanwhile.
        proposed, checked = await asyncio.to_thread(facts.read_reply, reply.text, shown)
        statements = [fact_statements.statement_of(fact, shown) for fact in checked.facts]
        self._found.add(proposed, checked, await self._context.decide(statements))
        return shown

    def _shown(self, part: Sequence[Turn], known: Sequence[Memory]) -> ShownConversation:
        memories = facts.fitting_memories(self._found.open_memories(known), self._known_tokens)
        earlier = self._fitting(self._inputs.before(part))
        turns = {(turn.session_id, turn.seq): turn for turn in [*earlier, *part]}
        keys = frozenset((turn.session_id, turn.seq) for turn in earlier)
        return ShownConversation(turns, {memory.id: memory for memory in memories}, keys)

    def _fitting(self, earlier: list[Turn]) -> list[Turn]:
        """Return the last of the turns before a part that have room."""
        room, kept_turns = self._earlier_tokens, list[Turn]()
        for turn in reversed(earlier):
            room -= facts.tokens_of_turn(turn)
            if room < 0:
                break
            kept_turns.append(turn)
        return kept_turns

    def _shown_turns(self, answers: Answers[Turn, ShownConversation]) -> list[Turn]:
        return list({key: turn for _, shown in answers.usable for key, turn in shown.turns.items()}.values())
