"""The blocks' words: headers and lines. What stands here is what the model reads."""

from collections.abc import Sequence

from shared.context.types import Block, BlockKind, Line
from shared.conversation.turns.turn import RecalledLine, Turn
from shared.foundation import prompt_safety
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.search import MemoryResult
from shared.memory.working import render
from shared.memory.working.working_entry import WorkingEntryInfo

RECALLED = "Recalled from long-term memory (relevant to this message):"
SUMMARY = "Summary of the conversation so far:"
EPISODES = "Episodes from long-term memory (what happened before):"
PAST_TURNS = "Related past conversation:"
WORKING_MEMORY = "On your desk (working memory; read a value by its key):"
PATROL = "Patrol findings (working memory; read a value by its key, delete it to dismiss):"
SUBAGENTS = "Subagent results (outlines; read one by its key):"
_PAST_TURN_CHARS = 600


def recalled_line(entry: Memory) -> str:
    """Return `- [id] (category or general): content`."""
    return f"- [{entry.id}] ({entry.category or 'general'}): {prompt_safety.single_line(entry.content)}"


def recalled(results: Sequence[MemoryResult]) -> Block | None:
    """Return the block of entries that are new in this turn."""
    return _of_entries(BlockKind.RECALLED, RECALLED, results)


def episodes(results: Sequence[MemoryResult]) -> Block | None:
    """Return the block of episodes that are new in this turn."""
    return _of_entries(BlockKind.EPISODES, EPISODES, results)


def _of_entries(kind: BlockKind, header: str, results: Sequence[MemoryResult]) -> Block | None:
    lines = tuple(Line(result.memory.id, recalled_line(result.memory)) for result in results)
    return Block(kind, header, lines) if lines else None


def replayed_texts(lines: Sequence[RecalledLine]) -> list[str]:
    """Return the texts of the blocks that an earlier turn was given, less what is gone since."""
    facts = [one.line for one in lines if not one.is_episode]
    told = [one.line for one in lines if one.is_episode]
    return [
        prompt_safety.fence(header, held) for header, held in ((RECALLED, facts), (EPISODES, told)) if held
    ]


def working_memory(listings: Sequence[WorkingEntryInfo]) -> Block | None:
    """Return the caller's own inventory."""
    return _inventory(BlockKind.WORKING_MEMORY, WORKING_MEMORY, listings)


def patrol(listings: Sequence[WorkingEntryInfo]) -> Block | None:
    """Return what patrols have left."""
    return _inventory(BlockKind.PATROL, PATROL, listings)


def subagents(chosen: Sequence[WorkingEntryInfo], others: int) -> Block | None:
    """Return outlines that subagents have left, and how many more there are."""
    note = f"({others} others)" if others else ""
    return _inventory(BlockKind.SUBAGENTS, SUBAGENTS, chosen, note)


def _inventory(
    kind: BlockKind, header: str, listings: Sequence[WorkingEntryInfo], note: str = ""
) -> Block | None:
    lines = tuple(Line(one.key, prompt_safety.single_line(render.inventory_line(one))) for one in listings)
    return Block(kind, header, lines, note) if lines else None


def past_turns(turns: Sequence[Turn]) -> Block | None:
    """Return turns of other sessions that the message brings back."""
    lines = tuple(Line(turn.record_id, _past_turn(turn)) for turn in turns)
    return Block(BlockKind.PAST_TURNS, PAST_TURNS, lines) if lines else None


def _past_turn(turn: Turn) -> str:
    said = prompt_safety.single_line(turn.content)
    shown = said if len(said) <= _PAST_TURN_CHARS else said[: _PAST_TURN_CHARS - 1] + "…"
    who = prompt_safety.single_line(turn.speaker or turn.role)
    return f"- [{turn.session_id} #{turn.seq}, {turn.created_at:%Y-%m-%d %H:%M}] {who}: {shown}"


def text(block: Block) -> str:
    """Return a block as the model reads it."""
    lines = [line.text for line in block.lines]
    return prompt_safety.fence(block.header, [*lines, block.note] if block.note else lines)
