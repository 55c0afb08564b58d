"""Builders for the inputs of a context: memories, search results, turns, blocks and listings."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.context.types import Block, BlockKind, ContextInputs, Line
from shared.conversation.turns.turn import RecalledLine, Turn
from shared.foundation.roles import Role
from shared.foundation.stages import MemoryState
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.memory_result import MemoryResult
from shared.memory.working.working_entry import WorkingEntryInfo

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def entry(memory_id: str, content: str = "", content_version: int = 1, category: str | None = None) -> Memory:
    """Return a live memory."""
    return Memory(
        id=memory_id,
        content=content or f"what {memory_id} says",
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


def result(memory_id: str, content: str = "", content_version: int = 1) -> MemoryResult:
    """Return a memory as a search result without scores."""
    return MemoryResult.unscored(entry(memory_id, content, content_version))


def turn(seq: int, content: str = "", role: Role = Role.USER, recalled: Sequence[str] = ()) -> Turn:
    """Return a turn. `recalled` are the ids of the memories shown with it; ids of episodes begin with `e`."""
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


def line(memory_id: str) -> RecalledLine:
    """Return the line of a memory as it was shown with a turn."""
    text = f"- [{memory_id}] (general): what {memory_id} says"
    return RecalledLine(id=memory_id, line=text, is_episode=memory_id.startswith("e"))


def block(kind: BlockKind, *texts: str) -> Block:
    """Return a block of lines."""
    return Block(kind, f"Header of {kind}:", tuple(Line(text, f"- {text}") for text in texts))


def listing(key: str, **fields: Any) -> WorkingEntryInfo:
    """Return a working-memory entry without its value."""
    return WorkingEntryInfo(key=key, stored_at=NOON, expires_at=NOON, remaining=272, version=1, **fields)


def context_inputs(
    turns: Sequence[Turn] = (),
    recalled: Sequence[MemoryResult] = (),
    other_blocks: Sequence[Block] = (),
    **fields: Any,
) -> ContextInputs:
    """Return context inputs; each recalled line is recorded as shown with the last turn that has it."""
    recalled_before = {
        line.id: (1, shown_turn.seq) for shown_turn in turns for line in shown_turn.recalled_lines
    }
    inputs: dict[str, Any] = {
        "turns": list(turns),
        "recalled": list(recalled),
        "other_blocks": list(other_blocks),
        "recalled_before": recalled_before,
    }
    return ContextInputs(**(inputs | fields))
