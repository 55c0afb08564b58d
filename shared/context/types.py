"""The types of a context: the request, the inputs, the blocks, and the built context."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shared.conversation.turns.turn import RecalledLine, Turn
from shared.memory.longterm.memory_result import MemoryResult
from shared.memory.skills.skill import CatalogueEntry, Skill


class BlockKind(StrEnum):
    """The blocks of a context in their order: two before the replayed turns, the others after them."""

    CORE = "core"
    SUMMARY = "summary"
    RECALLED = "recalled"
    EPISODES = "episodes"
    GRAPH = "graph"
    SKILL_CATALOGUE = "skill_catalogue"
    SKILLS = "skills"
    PAST_TURNS = "past_turns"
    SCRATCHPAD = "scratchpad"
    WORKING_MEMORY = "working_memory"
    PATROL = "patrol"
    SUBAGENTS = "subagents"


# Those that are stored with a recorded turn, so that the next context repeats them in the same place.
STORED_BLOCKS = frozenset(
    {BlockKind.RECALLED, BlockKind.EPISODES, BlockKind.SKILL_CATALOGUE, BlockKind.SKILLS}
)
MEMORY_BLOCKS = frozenset({BlockKind.RECALLED, BlockKind.EPISODES})
# Those that stand before the replayed turns. They are always shown, as the turns are.
FIRST_BLOCKS = frozenset({BlockKind.CORE, BlockKind.SUMMARY})
WORKING_BLOCKS = frozenset({BlockKind.WORKING_MEMORY, BlockKind.PATROL, BlockKind.SUBAGENTS})
TURNS = "turns"
# What is shortened first when the context is over its token budget. `core` never is, nor is the summary: it
# stands for turns that have given way already.
SHORTENING_ORDER = (
    BlockKind.PAST_TURNS,
    BlockKind.EPISODES,
    BlockKind.SKILLS,
    BlockKind.SKILL_CATALOGUE,
    BlockKind.GRAPH,
    BlockKind.SUBAGENTS,
    BlockKind.PATROL,
    BlockKind.WORKING_MEMORY,
    BlockKind.SCRATCHPAD,
    TURNS,
    BlockKind.RECALLED,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a block, and the id of the record that it shows; of a turn, its version, too."""

    record_id: str
    text: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Lines under a header, and a note below them."""

    kind: BlockKind
    header: str
    lines: tuple[Line, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class SkillInputs:
    """The skills of a session's scope: all that are in force, by name, and those that match the message.

    `entries` are by id; the first `max_listed` are in the catalogue. A matching skill is shown whole if its
    content has at most `max_chars` characters.
    """

    entries: Mapping[str, CatalogueEntry] = field(default_factory=dict)
    matching: tuple[Skill, ...] = ()
    max_listed: int = 0
    max_chars: int = 0


@dataclass(slots=True)
class ContextInputs:
    """Everything that was read for a turn, before it is assembled.

    `recalled_before` maps a memory's id to (content version, seq of the turn) of its last recall in this
    session. `timings` are milliseconds. Under a token budget, `window_step` turns give way at once.
    `lacks_summary` tells that turns before the replayed ones are in no summary yet, but are to be.
    """

    core: Block | None = None
    summary: Block | None = None
    lacks_summary: bool = False
    turns: list[Turn] = field(default_factory=list)
    recalled_before: dict[str, tuple[int, int]] = field(default_factory=dict)
    recalled: list[MemoryResult] = field(default_factory=list)
    episodes: list[MemoryResult] = field(default_factory=list)
    skills: SkillInputs = field(default_factory=SkillInputs)
    other_blocks: list[Block] = field(default_factory=list)
    first_turn: bool = False
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    timings_ms: dict[str, float] = field(default_factory=dict)
    window_step: int = 1

    @property
    def results(self) -> list[MemoryResult]:
        """Every memory that the message recalled, the episodes last."""
        return [*self.recalled, *self.episodes]


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """A built context.

    `new_memories` are shown for the first time, or again because they changed or left the window, as
    `lines`, which also have the parts of skills that are new. `withheld` are the ids of memories that were
    recalled but that an older turn still shows. `shortened` are the kinds of blocks that were shortened.
    """

    messages: list[dict[str, str]]
    blocks: list[Block]
    new_memories: list[MemoryResult]
    lines: tuple[RecalledLine, ...]
    withheld: list[str]
    tokens: int
    shortened: list[str]
