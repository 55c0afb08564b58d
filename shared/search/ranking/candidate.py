"""The input and the output of a ranking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Candidate:
    """A record that is to be ranked.

    `keyword` and `cosine` are the raw scores of the two channels. None means that the channel did not
    return this record, as for a neighbour turn. `at` is the time of the event that the record is about,
    or else the time when the record was saved. `importance` is in 0..1.
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
    """A ranked record and its final score.

    `columns` are the parts of the scores of all records of its ranking, of which it is the one at `position`.
    """

    id: str
    score: float
    columns: Mapping[str, Sequence[float]] = field(default_factory=dict)
    position: int = 0

    @property
    def scores(self) -> dict[str, float]:
        """Every part of the score by name, for `explain`."""
        return {name: column[self.position] for name, column in self.columns.items()}
