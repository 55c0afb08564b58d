"""Ask the model about turns that a pass has not read, in parts that fit into its prompt."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from shared.conversation.turns.turn import Turn
from shared.dreams.runs import unread_turns
from shared.foundation import prompt_size
from workers.passes import parts
from workers.passes.parts import Answers
from workers.passes.pass_context import PassContext

Answer = TypeVar("Answer")
_MAX_NAMED_TURNS = 50


async def ask_about_turns(
    context: PassContext,
    turns: Sequence[Turn],
    max_tokens: int,
    ask: Callable[[str], Awaitable[Answer]],
) -> Answers[Turn, Answer]:
    """Ask about turns in parts of at most `max_tokens`; `ask` gets the turns of a part as prompt text."""

    def tokens_of_turn(turn: Turn) -> int:
        return min(max_tokens, unread_turns.tokens_of_turn(turn))

    async def ask_about(part: list[Turn]) -> Answer:
        return await ask(unread_turns.render_turns(part, max_tokens))

    turn_parts = prompt_size.split(turns, tokens_of_turn, max_tokens)
    return await parts.ask_in_parts(context, turn_parts, ask_about, inputs_of)


def inputs_of(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return turns as inputs of a pass."""
    return {"turns": [turn.record_id for turn in turns]}


def name_part(turns: Sequence[Turn]) -> dict[str, Any]:
    """Return how a rejection names a part of the turns."""
    return {"kind": "turns", "turns": [turn.record_id for turn in turns[:_MAX_NAMED_TURNS]]}


def turn_keys(turns: Sequence[Turn]) -> list[tuple[str, int]]:
    """Return turns as (session id, seq)."""
    return [(turn.session_id, turn.seq) for turn in turns]
