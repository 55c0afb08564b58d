"""Pairs of statements labelled by hand: whether the newer one belongs above the older, for a question.

`labelled_pairs.jsonl` has one pair per line: `older`, `newer`, `question`, `language` (ISO 639-1), `label`.
Of `same_attribute` the newer belongs above the older. `different` pairs are worded alike, but speak of
different things or can both be true; `past_question` asks for what was. The rules are developed on the tuning
half alone: nobody looks at the mistakes in the held-out half.
"""

import hashlib
import json
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.ranking.latest_first import put_latest_first

_FILE = Path(__file__).with_suffix(".jsonl")


class Half(StrEnum):
    """A half of the pairs: those whose older text has an even or an odd SHA-256."""

    TUNING = "tuning"
    HELD_OUT = "held-out"


class Label(StrEnum):
    """What a pair is."""

    SAME_ATTRIBUTE = "same_attribute"
    DIFFERENT = "different"
    PAST_QUESTION = "past_question"


class LabelledPair(BaseModel):
    """An older and a newer statement, a question that finds both, and what they are to each other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Label
    language: str
    older: str
    newer: str
    question: str

    @property
    def half(self) -> Half:
        """The half that the pair belongs to, by the last bit of the SHA-256 of its older text in UTF-8."""
        is_odd = hashlib.sha256(self.older.encode()).digest()[-1] & 1
        return Half.HELD_OUT if is_odd else Half.TUNING

    def is_reordered(self) -> bool:
        """Tell whether the newer statement is put above the older, which was found above it."""
        candidates = [
            Candidate(id_, text, 1.0, None, said=text, since=since)
            for since, (id_, text) in enumerate((("older", self.older), ("newer", self.newer)))
        ]
        ranked = [ScoredCandidate("older", 1.0, position=0), ScoredCandidate("newer", 0.5, position=1)]
        return put_latest_first(self.question, ranked, candidates)[0].id == "newer"


def read() -> list[LabelledPair]:
    """Return all labelled pairs."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return [LabelledPair.model_validate(json.loads(line)) for line in lines]
