"""What a context is asked with, and what it is made of."""

from dataclasses import dataclass, field
from enum import StrEnum

from shared.conversation.turns.turn import RecalledLine, Turn
from shared.memory.longterm.search import MemoryResult


class BlockKind(StrEnum):
    """The blocks that stand before the current message, in this order.

    Graph, skills and scratchpad have their places between these; they come with their records.
    """

    RECALLED = "recalled"
    EPISODES = "episodes"
    PAST_TURNS = "past_turns"
    WORKING_MEMORY = "working_memory"
    PATROL = "patrol"
    SUBAGENTS = "subagents"


TURNS = "turns"
# What gives way first when the budget is short.
SHORTENING_ORDER = (
    BlockKind.PAST_TURNS,
    BlockKind.EPISODES,
    BlockKind.SUBAGENTS,
    BlockKind.PATROL,
    BlockKind.WORKING_MEMORY,
    TURNS,
    BlockKind.RECALLED,
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a block and the id of what it shows."""

    record_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A headed list of lines."""

    kind: BlockKind
    header: str
    lines: tuple[Line, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One user message and how its context is wanted."""

    message: str
    system: str | None = None
    record_turn: bool = True
    max_tokens: int | None = None
    explain: bool = False


@dataclass(slots=True)
class ContextInputs:
    """Everything read for a turn, before any of it is shaped."""

    turns: list[Turn] = field(default_factory=list)
    recalled_before: dict[str, tuple[int, int]] = field(default_factory=dict)
    recalled: list[MemoryResult] = field(default_factory=list)
    episodes: list[MemoryResult] = field(default_factory=list)
    other_blocks: list[Block] = field(default_factory=list)
    first_turn: bool = False
    stages: list[str] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def found(self) -> list[MemoryResult]:
        """Every entry that the message brought up, the episodes last."""
        return [*self.recalled, *self.episodes]


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """A finished context. `new` are the entries shown for the first time, `withheld` those shown before."""

    messages: list[dict[str, str]]
    blocks: list[Block]
    new_memories: list[MemoryResult]
    lines: tuple[RecalledLine, ...]
    withheld: list[str]
    tokens: int
    shortened: list[str]
