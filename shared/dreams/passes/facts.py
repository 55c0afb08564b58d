"""Facts out of conversations: what the model is shown, and what of its reply may be stored."""

from collections.abc import Iterable

from shared.conversation.turns.turn import Turn
from shared.dreams.verification import fact_check, fact_plan
from shared.dreams.verification.fact_check import CheckedFacts, Fact, ShownConversation
from shared.dreams.verification.fact_plan import ProposedFact
from shared.foundation import prompt_size
from shared.foundation.categories import (
    ACTIVE_PLANS,
    ANTI_PATTERNS,
    EPISODES,
    PREFERENCES,
    is_below,
)
from shared.foundation.prompt_safety import single_line
from shared.memory.longterm.labels import given_tags, limited_importance
from shared.memory.longterm.memory import Memory, MemoryDraft

DIRECTIVE = "mine-facts"
_OTHER_KINDS = (ACTIVE_PLANS, ANTI_PATTERNS, EPISODES)
"""Categories of memories that are treated in other ways than facts."""
_DEFAULT_IMPORTANCE = 0.5


def is_comparable(memory: Memory) -> bool:
    """Tell whether a memory may be shown as known. Plans, anti-patterns and episodes are no facts."""
    return not any(is_below(root, memory.category) for root in _OTHER_KINDS)


def to_draft(fact: Fact) -> MemoryDraft:
    """Return the memory to create of a fact that is not known. One that replaces another begins then.

    No fact becomes an anti-pattern, a preference, a plan or an episode, whatever the model has written.
    """
    proposed = fact.proposed
    importance = _DEFAULT_IMPORTANCE if proposed.importance is None else proposed.importance
    is_of_another_kind = any(is_below(root, proposed.category) for root in (*_OTHER_KINDS, PREFERENCES))
    return MemoryDraft(
        content=proposed.content,
        category=None if is_of_another_kind else proposed.category,
        tags=given_tags(proposed.tags, (), of_warning=False),
        importance=limited_importance(importance),
        occurred_at=fact.occurred_at,
        valid_from=None if fact.of is None else fact.occurred_at,
        enrich=False,
    )


def render_prompt(shown: ShownConversation, max_turn_tokens: int | None = None) -> str:
    """Return the known memories and the turns as prompt text.

    Turns are grouped by session. Each has the number that the model refers to, and its time, from which
    "tomorrow" is counted. A turn of more than `max_turn_tokens` is shortened.
    """
    known = [_memory_line(memory) for memory in shown.memories.values()]
    lines = ["Known facts:", *(known or ["- none"]), ""]
    session_id: str | None = None
    for key in sorted(shown.turns):
        turn = shown.turns[key]
        if turn.session_id != session_id:
            session_id = turn.session_id
            lines.append(_session_line(turn))
        line = ("(read before) " if key in shown.earlier else "") + _turn_line(turn)
        lines.append(line if max_turn_tokens is None else prompt_size.shorten(line, max_turn_tokens))
    return "\n".join(lines)


def tokens_of_turn(turn: Turn) -> int:
    """Return about how many tokens a turn adds to a prompt at most."""
    return prompt_size.tokens_of(_session_line(turn)) + prompt_size.tokens_of(_turn_line(turn))


def fitting_memories(memories: Iterable[Memory], max_tokens: int) -> list[Memory]:
    """Return the first of these memories that together add at most `max_tokens` to a prompt."""
    kept_memories: list[Memory] = []
    for memory in memories:
        max_tokens -= prompt_size.tokens_of(_memory_line(memory))
        if max_tokens < 0:
            break
        kept_memories.append(memory)
    return kept_memories


def _memory_line(memory: Memory) -> str:
    return f"- [ID:{memory.id}] {single_line(memory.content)} (since {memory.at:%Y-%m-%d})"


def _session_line(turn: Turn) -> str:
    return f"## Session: {turn.session_id}"


def _turn_line(turn: Turn) -> str:
    speaker, content = single_line(turn.speaker or turn.role), single_line(turn.content)
    return f"[{turn.seq}] {turn.created_at:%Y-%m-%d %H:%M} {speaker} ({turn.role}): {content}"


def read_reply(reply: str, shown: ShownConversation) -> tuple[list[ProposedFact], CheckedFacts]:
    """Return what a reply proposes, and which of it may be stored.

    Raises errors.InvalidModelReply if the reply has no list of facts.
    """
    proposed = fact_plan.parse(reply)
    return proposed, fact_check.check(proposed, shown)
