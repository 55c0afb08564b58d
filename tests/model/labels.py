"""Notes with what must not be lost of them, written by hand (`notes.jsonl`).

Each of `keeps` is a list of wordings, parted by `|`, of one name, number, date or negation: one of them must
stand in what became of the note. They were written without the parser that the product itself checks with.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("notes.jsonl")
_INSIDE_WORD = "[0-9A-Za-z\u00c0-\u024f]"


@dataclass(frozen=True, slots=True)
class LabelledNote:
    """A note and the names, numbers, dates and negations in it."""

    id: str
    content: str
    keeps: tuple[str, ...]

    def missing_in(self, text: str) -> list[str]:
        """Return what of the note a text lacks."""
        return [wordings for wordings in self.keeps if not _says(text, wordings)]


def read() -> list[LabelledNote]:
    """Return the notes of the file."""
    lines: Iterable[dict[str, object]] = map(json.loads, _FILE.read_text(encoding="utf-8").splitlines())
    return [_from_line(**line) for line in lines]  # type: ignore[arg-type]


def _from_line(id: str, language: str, content: str, keeps: list[str]) -> LabelledNote:  # noqa: A002
    return LabelledNote(id, content, tuple(keeps))


def contains(text: str, wording: str) -> bool:
    """Tell whether a text has a wording as whole words."""
    return re.search(pattern(wording), text, re.IGNORECASE) is not None


def pattern(wording: str) -> str:
    """Return the expression that finds a wording as whole words. A negation may end a word: "doesn't"."""
    before = "" if wording == "n't" else f"(?<!{_INSIDE_WORD})"
    return f"{before}{re.escape(wording)}(?!{_INSIDE_WORD})"


def _says(text: str, wordings: str) -> bool:
    return any(contains(text, wording) for wording in wordings.split("|"))
