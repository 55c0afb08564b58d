"""The input and the output of a ranking."""

from collections.abc import Hashable, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import NamedTuple


# Both are named tuples, because a search makes hundreds of them, and a frozen dataclass takes longer.
class Candidate(NamedTuple):
    """A record that is to be ranked.

    `keyword` and `cosine` are the raw scores of the two channels. None means that the channel did not
    return this record, as for a neighbour turn. `day` is that of the event that the record is about,
    or else the one when the record was saved, in UTC. `importance` is in 0..1. `text` is what keywords match,
    `said` what the record says. `since` is when that became true or was said last, in seconds since 1970.
    Of two records with the same `key` and different `since`, one is outdated. `owner` is the user to whom a
    record belongs; None: it is common to all.
    """

    id: str
    text: str
    keyword: float | None
    cosine: float | None
    importance: float = 0.5
    day: date | None = None
    speaker: str | None = None
    role: str | None = None
    session_id: str | None = None
    seq: int | None = None
    said: str = ""
    since: float | None = None
    key: Hashable = None
    owner: str | None = None


class ScoredCandidate(NamedTuple):
    """A ranked record and its final score.

    `columns` are the parts of the scores of all records of its ranking, of which it is the one at `position`.
    `latest_above` is the id of an older record that says something else about the same, above which it was
    put: then it has that record's score.
    """

    id: str
    score: float
    columns: Mapping[str, Sequence[float]] = MappingProxyType({})
    position: int = 0
    latest_above: str | None = None

    @property
    def scores(self) -> dict[str, float | str]:
        """Every part of the score by name, for `explain`. A record keeps its own "score" here."""
        scores: dict[str, float | str] = {
            name: column[self.position] for name, column in self.columns.items()
        }
        return scores if self.latest_above is None else scores | {"latest_above": self.latest_above}
