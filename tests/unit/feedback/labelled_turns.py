"""User turns labelled by hand: whether each corrects the assistant, in two halves.

`labelled_turns.jsonl` has one turn per line: `text`, `language` (ISO 639-1), `domain`, `label`
(`correction` or `other`), and `previous`, the assistant's turn before it, where it matters. The
detector is developed on the tuning half alone. Nobody looks at its mistakes in the held-out half: a
phrase added for such a mistake would make the measured figures worthless.
"""

import hashlib
import json
from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_FILE = Path(__file__).with_suffix(".jsonl")


class Half(StrEnum):
    """A half of the labelled turns: those whose text has an even or an odd SHA-256."""

    TUNING = "tuning"
    HELD_OUT = "held-out"


class LabelledTurn(BaseModel):
    """A user's turn, the assistant's turn before it, and whether it is a correction."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    language: str
    domain: str
    label: str
    previous: str | None = None

    @property
    def corrects(self) -> bool:
        """Whether the turn is labelled as a correction."""
        return self.label == "correction"

    @property
    def half(self) -> Half:
        """The half that the turn belongs to, by the last bit of the SHA-256 of its text in UTF-8."""
        is_odd = hashlib.sha256(self.text.encode()).digest()[-1] & 1
        return Half.HELD_OUT if is_odd else Half.TUNING


def read() -> list[LabelledTurn]:
    """Return all labelled turns."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return [LabelledTurn.model_validate(json.loads(line)) for line in lines]


def read_half(half: Half) -> list[LabelledTurn]:
    """Return the labelled turns of one half."""
    return [turn for turn in read() if turn.half is half]
