"""The assistant's turn before a user's turn: what was asked or stated."""

import re
from dataclasses import dataclass
from enum import Enum, auto

from shared.conversation.feedback.phrases import FILLERS, normalize
from shared.foundation import validation

_MAX_EXAMINED = 20_000
_WORD = re.compile(r"\w{3,40}")
_NUMBER = re.compile(r"\d{1,20}(?:[.,:]\d{1,9})?")
_STEM_LENGTH = 5


class Form(Enum):
    """What an assistant's turn is, as far as an answer to it goes."""

    UNKNOWN = auto()
    QUESTION = auto()
    STATEMENT = auto()


@dataclass(frozen=True, slots=True)
class PreviousTurn:
    """The form of the assistant's turn, the beginnings of its words, and its numbers."""

    form: Form
    stems: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()

    def shares_word_with(self, words: str) -> bool:
        """Tell whether these words speak of something that the assistant's turn speaks of."""
        return bool(self.stems & stems(words))

    def has_other_numbers(self, words: str) -> bool:
        """Tell whether these words name other numbers than the assistant's turn, and both name some."""
        return bool(self.numbers) and bool(set(_NUMBER.findall(words)) - self.numbers)


def read(text: str | None) -> PreviousTurn:
    """Read an assistant's turn; None stands for a turn that is not known."""
    if text is None or validation.is_blank(text):
        return PreviousTurn(Form.UNKNOWN)
    words = normalize(text[-_MAX_EXAMINED:]).strip()
    form = Form.QUESTION if words.rstrip(" *_)\"'").endswith("?") else Form.STATEMENT
    return PreviousTurn(form, stems(words), frozenset(_NUMBER.findall(words)))


def stems(words: str) -> frozenset[str]:
    """Return the beginnings of the words that tell what a normalized text is about."""
    return frozenset(word[:_STEM_LENGTH] for word in _WORD.findall(words) if word not in FILLERS)
