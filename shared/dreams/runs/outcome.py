"""The changes that a pass asks for, as data. `apply` writes all of them in one transaction."""

from dataclasses import dataclass, field
from typing import Any

from shared.conversation.turns.turn import record_id_of
from shared.memory.longterm.memory import Memory

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to create, as a row for `upsert`, and the memories that it replaces."""

    row: Row
    sources: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchiveRequest:
    """A memory to archive without a successor, and the reason."""

    memory: Memory
    reason: str


@dataclass(slots=True)
class Outcome:
    """What a pass read, what the model proposed, what was rejected, and what is to be changed."""

    inputs: dict[str, Any] = field(default_factory=dict)
    proposed: Any = None
    rejections: list[dict[str, Any]] = field(default_factory=list)
    creations: list[NewMemory] = field(default_factory=list)
    removals: list[ArchiveRequest] = field(default_factory=list)
    # Turns as (session id, seq), and ids of signals, which are marked as read by this pass when it ends.
    turns: list[tuple[str, int]] = field(default_factory=list)
    read_signal_ids: list[str] = field(default_factory=list)
    # The version of each memory that a consolidation reviewed, by memory id.
    reviewed: dict[str, int] = field(default_factory=dict)
    # The size of the batch in which a memory got no usable reply, by memory id.
    refused_batch_sizes: dict[str, int] = field(default_factory=dict)
    # Rows of counted occurrences.
    occurrences: list[Row] = field(default_factory=list)
    inferred_keys: list[str] = field(default_factory=list)
    # The ids of the memories and sessions that the model was shown, whose text its reply may repeat.
    shown_memories: set[str] = field(default_factory=set)
    shown_sessions: set[str] = field(default_factory=set)
    # Whether something is left for another run, because the time, the budget or a limit was reached.
    has_more: bool = False

    @property
    def record_ids(self) -> list[str]:
        """The ids of the records whose text the outcome may repeat: deleting one clears that text."""
        turn_ids = {record_id_of(session_id, seq) for session_id, seq in self.turns}
        return sorted(self.shown_memories | self.shown_sessions | turn_ids)


class PassSkipped(Exception):
    """Raised by a pass that has nothing to do, or may not do it now: then `has_more` is true.

    The message says why.
    """

    def __init__(self, reason: str, *, has_more: bool = False) -> None:
        super().__init__(reason)
        self.has_more = has_more
