"""What goes into a ranking and what comes out of it: plain records, no store and no model."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Candidate:
    """One record offered for ranking.

    `keyword` and `cosine` are the raw scores of the two channels; None says that the channel did
    not return this record (for instance a neighbour that was fetched because of its hit).
    `at` is when the thing happened, or else when it was written. `importance` lies in 0..1.
    """

    id: str
    text: str
    keyword: float | None
    cosine: float | None
    importance: float = 0.5
    at: datetime | None = None
    speaker: str | None = None
    role: str | None = None
    session_id: str | None = None
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """One ranked record: its final score and, for `explain`, every part of it by name."""

    id: str
    score: float
    scores: dict[str, float] = field(default_factory=dict)
