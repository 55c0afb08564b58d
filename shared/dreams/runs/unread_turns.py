"""The turns that a pass has not read yet, as prompt text."""

from collections.abc import Sequence

from shared.conversation.turns.turn import Turn
from shared.foundation import prompt_size
from shared.foundation.prompt_safety import single_line


def render_turns(turns: Sequence[Turn], max_tokens: int | None = None) -> str:
    """Return turns as prompt text: grouped by session, each with the number that the model refers to.

    A turn of more than `max_tokens` is shortened.
    """
    lines: list[str] = []
    session_id: str | None = None
    for turn in turns:
        if turn.session_id != session_id:
            session_id = turn.session_id
            lines.append(_session_line(turn))
        line = _turn_line(turn)
        lines.append(line if max_tokens is None else prompt_size.shorten(line, max_tokens))
    return "\n".join(lines)


def tokens_of_turn(turn: Turn) -> int:
    """Return about how many tokens a turn adds to a prompt at most."""
    return prompt_size.tokens_of(_session_line(turn)) + prompt_size.tokens_of(_turn_line(turn))


def last_fitting(turns: Sequence[Turn], max_tokens: int) -> list[Turn]:
    """Return the last of these turns that together have at most `max_tokens`."""
    return prompt_size.last_fitting(turns, tokens_of_turn, max_tokens)


def _session_line(turn: Turn) -> str:
    return f"## Session: {turn.session_id}"


def _turn_line(turn: Turn) -> str:
    speaker, content = single_line(turn.speaker or turn.role), single_line(turn.content)
    return f"[{turn.seq}] {speaker} ({turn.role}): {content}"
