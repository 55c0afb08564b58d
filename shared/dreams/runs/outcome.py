"""What a pass wants done, as data: nothing is changed until `apply` does it all in one transaction."""

from dataclasses import dataclass, field
from typing import Any

from shared.conversation.feedback.feedback_signal import FeedbackSignalDraft
from shared.memory.longterm.memory import Memory

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A new entry, as a row for `longterm.store.upsert`, and the entries whose place it takes."""

    row: Row
    sources: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchiveRequest:
    """An entry to archive without a successor, and why."""

    entry: Memory
    reason: str


@dataclass(slots=True)
class Outcome:
    """What a pass read, what was proposed, what was turned down, and what is to be done."""

    inputs: dict[str, Any] = field(default_factory=dict)
    proposed: Any = None
    rejections: list[dict[str, Any]] = field(default_factory=list)
    creations: list[NewMemory] = field(default_factory=list)
    removals: list[ArchiveRequest] = field(default_factory=list)
    # Turns that were read, as (session, seq): marked as read by this pass when it ends.
    turns: list[tuple[str, int]] = field(default_factory=list)
    # Entries that a consolidation looked at, with the version it saw.
    reviewed: dict[str, int] = field(default_factory=dict)
    # Signals by session, and counted occurrences that go in with the same transaction.
    signals: list[tuple[str, FeedbackSignalDraft]] = field(default_factory=list)
    occurrences: list[Row] = field(default_factory=list)
    inferred_keys: list[str] = field(default_factory=list)
    # Whether something was left for another night, for want of time.
    has_more: bool = False


class PassSkipped(Exception):
    """There is nothing for this pass to do; the message says why."""
