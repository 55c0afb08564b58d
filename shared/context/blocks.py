"""The texts of the blocks, as the model reads them: headers and lines."""

from collections.abc import Sequence

from shared.context.types import Block, BlockKind, Line
from shared.conversation.scratchpad.snippet import Snippet
from shared.conversation.summary.summary import SessionSummary, summary_id_of
from shared.conversation.turns.turn import RecalledLine, SkillPart, Turn
from shared.foundation import prompt_safety
from shared.memory.graph.traversal import Step
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.memory_result import MemoryResult
from shared.memory.pinned.pinned_text import CoreText
from shared.memory.skills.skill import CatalogueEntry, Skill
from shared.memory.working import render
from shared.memory.working.working_entry import WorkingEntryInfo

CORE = "Pinned texts (always shown):"
RECALLED = "Recalled from long-term memory (relevant to this message):"
SUMMARY = "Summary of the conversation so far:"
EPISODES = "Episodes from long-term memory (what happened before):"
GRAPH = "Related knowledge graph connections:"
SKILL_CATALOGUE = "Skills (how to do something; read one by its name before you do it):"
SKILLS = "Skills that match this message:"
PAST_TURNS = "Related past conversation:"
SCRATCHPAD = "Scratchpad (notes of this session so far):"
WORKING_MEMORY = "Working memory (read a value by its key):"
PATROL = "Patrol findings (working memory; read a value by its key, delete it to dismiss):"
SUBAGENTS = "Subagent results (outlines; read one by its key):"
_MAX_PAST_TURN_CHARS = 600


def core(texts: Sequence[CoreText]) -> Block | None:
    """Return the block of pinned texts, or None if there are none."""
    lines = tuple(Line(text.id, _pinned_lines(text)) for text in texts)
    return Block(BlockKind.CORE, CORE, lines) if lines else None


def summary(summary_: SessionSummary | None) -> Block | None:
    """Return the block of a session's summary, or None if it has none."""
    if summary_ is None:
        return None
    line = Line(summary_id_of(summary_.session_id), prompt_safety.indented(summary_.content))
    return Block(BlockKind.SUMMARY, SUMMARY, (line,))


def reported_summary(turn: Turn) -> str:
    """Return the text of a summary that a caller has reported as a turn."""
    return prompt_safety.fence(SUMMARY, [prompt_safety.indented(turn.content)])


def _pinned_lines(text: CoreText) -> str:
    return f"- [{text.name}]:\n{prompt_safety.indented(text.content)}"


def recalled_line(memory: Memory) -> str:
    """Return `- [id] (category or general): content`; of a contested one with its date and its rivals."""
    marks = memory.category or "general"
    if memory.contested_with:
        rivals = ", ".join(f"[{rival_id}]" for rival_id in memory.contested_with)
        marks += f", {memory.at:%Y-%m-%d}, contested by {rivals}"
    return f"- [{memory.id}] ({marks}): {prompt_safety.single_line(memory.content)}"


def recalled(results: Sequence[MemoryResult]) -> Block | None:
    """Return the block of recalled memories that are new in this turn, or None if there are none."""
    return _memory_block(BlockKind.RECALLED, RECALLED, results)


def episodes(results: Sequence[MemoryResult]) -> Block | None:
    """Return the block of episodes that are new in this turn, or None if there are none."""
    return _memory_block(BlockKind.EPISODES, EPISODES, results)


def _memory_block(kind: BlockKind, header: str, results: Sequence[MemoryResult]) -> Block | None:
    lines = tuple(Line(result.memory.id, recalled_line(result.memory)) for result in results)
    return Block(kind, header, lines) if lines else None


def replayed_texts(lines: Sequence[RecalledLine]) -> list[str]:
    """Return the texts of the blocks that were shown with an earlier turn, with these lines."""
    of_memories = [line for line in lines if line.skill_part is None]
    of_skills = [line for line in lines if line.skill_part is not None]
    lines_by_header = (
        (RECALLED, [line.line for line in of_memories if not line.is_episode]),
        (EPISODES, [line.line for line in of_memories if line.is_episode]),
        (SKILL_CATALOGUE, [line.line for line in of_skills if line.skill_part is SkillPart.CATALOGUE]),
        (SKILLS, [line.line for line in of_skills if line.skill_part is not SkillPart.CATALOGUE]),
    )
    return [prompt_safety.fence(header, texts) for header, texts in lines_by_header if texts]


def skill_entry(entry: CatalogueEntry) -> str:
    """Return `- [name]: summary`, as the catalogue lists a skill."""
    return f"- [{entry.name}]: {prompt_safety.single_line(entry.summary)}"


def skill_content(skill: Skill, max_chars: int) -> str:
    """Return a skill with its whole content, or with its summary if that is longer than `max_chars`."""
    if len(skill.content) > max_chars:
        return f"- [{skill.name}] (long: read it by its name): {prompt_safety.single_line(skill.summary)}"
    content = prompt_safety.indented(skill.content.strip("\r\n"))
    return f"- [{skill.name}]:\n{content}"


def skill_see_also(entry: CatalogueEntry) -> str:
    """Return the line of a skill that another one names."""
    return f"- see also [{entry.name}]: {prompt_safety.single_line(entry.summary)}"


def skills(lines: Sequence[RecalledLine]) -> list[Block]:
    """Return the blocks of the parts of skills that are new in this turn: the catalogue, and what matches."""
    listed = [line for line in lines if line.skill_part is SkillPart.CATALOGUE]
    matching = [line for line in lines if line.skill_part is not SkillPart.CATALOGUE]
    parts = (
        (BlockKind.SKILL_CATALOGUE, SKILL_CATALOGUE, listed),
        (BlockKind.SKILLS, SKILLS, matching),
    )
    return [
        Block(kind, header, tuple(Line(line.id, line.line) for line in of_kind))
        for kind, header, of_kind in parts
        if of_kind
    ]


def working_memory(infos: Sequence[WorkingEntryInfo]) -> Block | None:
    """Return the inventory of the session's own namespace, or None if it is empty."""
    return _inventory(BlockKind.WORKING_MEMORY, WORKING_MEMORY, infos)


def patrol(chosen: Sequence[WorkingEntryInfo], other_count: int) -> Block | None:
    """Return the inventory of chosen entries that patrols wrote, with the number of the others."""
    return _inventory(BlockKind.PATROL, PATROL, chosen, _others(other_count))


def subagents(chosen: Sequence[WorkingEntryInfo], other_count: int) -> Block | None:
    """Return the inventory of chosen outlines that subagents wrote, with the number of the others."""
    return _inventory(BlockKind.SUBAGENTS, SUBAGENTS, chosen, _others(other_count))


def _others(count: int) -> str:
    return f"({count} others)" if count else ""


def _inventory(
    kind: BlockKind, header: str, infos: Sequence[WorkingEntryInfo], note: str = ""
) -> Block | None:
    lines = tuple(Line(info.key, prompt_safety.single_line(render.inventory_line(info))) for info in infos)
    return Block(kind, header, lines, note) if lines else None


def graph(steps: Sequence[Step]) -> Block | None:
    """Return the block of what is connected with the message's entities, or None if nothing is."""
    lines = tuple(Line(step.id, step.line) for step in steps)
    return Block(BlockKind.GRAPH, GRAPH, lines) if lines else None


def past_turns(turns: Sequence[Turn]) -> Block | None:
    """Return the block of turns of other sessions that match the message, or None if there are none."""
    lines = tuple(Line(turn.record_id, _past_turn_line(turn), turn.version) for turn in turns)
    return Block(BlockKind.PAST_TURNS, PAST_TURNS, lines) if lines else None


def _past_turn_line(turn: Turn) -> str:
    content = prompt_safety.single_line(turn.content)
    if len(content) > _MAX_PAST_TURN_CHARS:
        content = content[: _MAX_PAST_TURN_CHARS - 1] + "…"
    speaker = prompt_safety.single_line(turn.speaker or turn.role)
    return f"- [{turn.session_id} #{turn.seq}, {turn.created_at:%Y-%m-%d %H:%M}] {speaker}: {content}"


def scratchpad(snippets: Sequence[Snippet]) -> Block | None:
    """Return the block of a session's snippets, or None if it has none.

    The one that was used last comes first, so that what a token budget cuts off matters least.
    """
    last_used_first = sorted(snippets, key=lambda snippet: snippet.revision, reverse=True)
    lines = tuple(Line(snippet.id, _snippet_line(snippet)) for snippet in last_used_first)
    return Block(BlockKind.SCRATCHPAD, SCRATCHPAD, lines) if lines else None


def _snippet_line(snippet: Snippet) -> str:
    count = f" (noted {snippet.count} times)" if snippet.count > 1 else ""
    return f"- [{snippet.id}]{count}: {prompt_safety.single_line(snippet.content)}"


def text(block: Block) -> str:
    """Return the text of a block, with its lines marked as data."""
    lines = [line.text for line in block.lines]
    return prompt_safety.fence(block.header, [*lines, block.note] if block.note else lines)
