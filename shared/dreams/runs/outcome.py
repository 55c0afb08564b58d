"""The changes that a pass asks for, as data. `apply` writes all of them in one transaction."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.conversation.feedback.feedback_signal import FeedbackSignal
from shared.conversation.turns.turn import Turn, record_id_of
from shared.dreams.skill_proposals.proposal import ProposalDraft as SkillProposalDraft
from shared.dreams.verification.graph_changes import GraphChanges
from shared.memory.longterm.memory import Memory, Source
from shared.memory.proposals.proposal import ProposalDraft

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to create, as a row for `upsert`, and the memories that it replaces.

    If the memory is new, it gets a preference beside it under this key.
    """

    row: Row
    sources: tuple[Memory, ...] = ()
    preference_key: str | None = None


@dataclass(frozen=True, slots=True)
class ArchiveRequest:
    """A memory to archive without a successor, and the reason."""

    memory: Memory
    reason: str


@dataclass(frozen=True, slots=True)
class Reinforcement:
    """A memory that was observed once more, and the sources of that."""

    memory: Memory
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Closing:
    """A memory that is no longer valid from `at` on, and the id of the new memory that replaces it.

    The closed memory may itself be one that the outcome creates. `is_judged` says that a trusted judge found
    that it has ended.
    """

    memory: Memory
    successor_id: str
    at: datetime
    is_judged: bool = False


@dataclass(frozen=True, slots=True)
class Contest:
    """A memory that stays valid beside the new one that says otherwise, by the new one's id."""

    memory: Memory
    rival_id: str


@dataclass(slots=True)
class Outcome:
    """What a pass read, what the model proposed, what was rejected, and what is to be changed."""

    inputs: dict[str, Any] = field(default_factory=dict)
    proposed: Any = None
    rejections: list[dict[str, Any]] = field(default_factory=list)
    creations: list[NewMemory] = field(default_factory=list)
    removals: list[ArchiveRequest] = field(default_factory=list)
    reinforcements: list[Reinforcement] = field(default_factory=list)
    closings: list[Closing] = field(default_factory=list)
    contests: list[Contest] = field(default_factory=list)
    # What is in doubt, and waits for a judge or a caller.
    held: list[ProposalDraft] = field(default_factory=list)
    # What is to be changed in the graph of the scope.
    graph: GraphChanges | None = None
    # Proposals about skills, and the versions of skills that the pass has reviewed, by id.
    skill_proposals: list[SkillProposalDraft] = field(default_factory=list)
    reviewed_skills: dict[str, int] = field(default_factory=dict)
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
    # The skills that the model was shown, likewise: their versions by id.
    shown_skills: dict[str, int] = field(default_factory=dict)
    # The turns and the signals that the model was shown.
    shown_turns: list[Turn] = field(default_factory=list)
    shown_signals: list[FeedbackSignal] = field(default_factory=list)
    # Whether something is left for another run, because the time, the budget or a limit was reached.
    has_more: bool = False

    @property
    def record_ids(self) -> list[str]:
        """The ids of the records whose text the outcome may repeat: deleting one clears that text."""
        turn_ids = {record_id_of(session_id, seq) for session_id, seq in self.turns}
        turn_ids |= {turn.record_id for turn in self.shown_turns}
        signal_turns = {(signal.session_id, signal.seq) for signal in self.shown_signals}
        turn_ids |= {record_id_of(session_id, seq) for session_id, seq in signal_turns if seq is not None}
        return sorted({*self.shown_memories, *self.shown_sessions, *self.shown_skills, *turn_ids})


class PassSkipped(Exception):
    """Raised by a pass that has nothing to do, or may not do it now: then `has_more` is true.

    The message says why.
    """

    def __init__(self, reason: str, *, has_more: bool = False) -> None:
        super().__init__(reason)
        self.has_more = has_more
