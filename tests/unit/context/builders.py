"""What a context is made of, as tests tell it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.context.types import Block, BlockKind, ContextInputs, Line
from shared.conversation.turns.turn import RecalledLine, Turn
from shared.foundation.roles import Role
from shared.foundation.stages import MemoryState
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.search import MemoryResult
from shared.memory.working.working_entry import WorkingEntryInfo

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def entry(entry_id: str, content: str = "", content_version: int = 1, category: str | None = None) -> Memory:
    """Return a live entry."""
    return Memory(
        id=entry_id,
        content=content or f"what {entry_id} says",
        category=category,
        tags=[],
        metadata={},
        importance=0.5,
        state=MemoryState.FINAL,
        occurred_at=None,
        source=None,
        sources=[],
        created_at=NOON,
        updated_at=None,
        last_seen_at=NOON,
        reinforcement_count=1,
        agent_id="a",
        user_id=None,
        superseded_by=[],
        derived_from=[],
        archived_at=None,
        archive_reason=None,
        tenant="t",
        version=content_version,
        content_version=content_version,
    )


def result(entry_id: str, content: str = "", content_version: int = 1) -> MemoryResult:
    """Return an entry as a search found it."""
    return MemoryResult.unscored(entry(entry_id, content, content_version))


def turn(seq: int, content: str = "", role: Role = Role.USER, recalled: Sequence[str] = ()) -> Turn:
    """Return a turn; `recalled` are ids of entries shown with it; those of episodes begin with `e`."""
    return Turn(
        session_id="s",
        seq=seq,
        role=role,
        speaker=None,
        content=content or f"turn {seq}",
        created_at=NOON,
        metadata={},
        recalled_lines=[line(record_id) for record_id in recalled],
    )


def line(entry_id: str) -> RecalledLine:
    """Return an entry as it was shown with a turn."""
    shown = f"- [{entry_id}] (general): what {entry_id} says"
    return RecalledLine(id=entry_id, line=shown, is_episode=entry_id.startswith("e"))


def block(kind: BlockKind, *texts: str) -> Block:
    """Return a block of lines."""
    return Block(kind, f"Header of {kind}:", tuple(Line(text, f"- {text}") for text in texts))


def listing(key: str, **fields: Any) -> WorkingEntryInfo:
    """Return a working-memory entry without its value."""
    return WorkingEntryInfo(key=key, stored_at=NOON, expires_at=NOON, remaining=272, **fields)


def gathered(
    turns: Sequence[Turn] = (),
    recalled: Sequence[MemoryResult] = (),
    others: Sequence[Block] = (),
    **fields: Any,
) -> ContextInputs:
    """Return what was read for a turn; every line of a turn is marked as shown with the last that has it."""
    marks = {line.id: (1, turn_.seq) for turn_ in turns for line in turn_.recalled_lines}
    read: dict[str, Any] = {
        "turns": list(turns),
        "recalled": list(recalled),
        "other_blocks": list(others),
        "recalled_before": marks,
    }
    return ContextInputs(**(read | fields))
