"""The turns that a pass has not read yet, as prompt text."""

from collections.abc import Sequence

from shared.conversation.turns.turn import Turn
from shared.foundation.prompt_safety import single_line


def render_turns(turns: Sequence[Turn]) -> str:
    """Return turns as prompt text: grouped by session, each with the number that the model refers to."""
    lines: list[str] = []
    session_id: str | None = None
    for turn in turns:
        if turn.session_id != session_id:
            session_id = turn.session_id
            lines.append(f"## Session: {session_id}")
        speaker, content = single_line(turn.speaker or turn.role), single_line(turn.content)
        lines.append(f"[{turn.seq}] {speaker} ({turn.role}): {content}")
    return "\n".join(lines)
