"""Read a text as a statement: its words in order, in the form in which two statements are compared."""

import re
from dataclasses import dataclass

from shared.search.ranking import statement_words
from shared.search.text.stemmer import stem

MAX_CHARS = 400
"""Characters of a text that are read: a long message says many things, and what it is about comes first."""
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"\d+(?:[.,:/-]\d+)*|[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+|[$€£¥%]")
_ASCII_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[a-z]+|[$%]")
_SAYS_NOTHING = statement_words.ARTICLES | statement_words.CHANGE_MARKS | statement_words.AUXILIARIES
_IN_NEGATIONS = _SAYS_NOTHING | statement_words.NEGATIONS | statement_words.BESIDE_NEGATIONS

_PAST_FORMS = "|".join(sorted(statement_words.PASTS))
# A verb in the past, but no participle of a state ("is painted"); or the perfect of other languages.
_EVENT = re.compile(
    rf"(?:\b(?P<state>am|is|are|be|been|being|s|re|m)\s+)?\b(?P<verb>[a-z]{{2,}}ed|{_PAST_FORMS})\b"
    r"|\b(?:wurden?|hab(?:e|en|t)|hat)\b.*\b(?:ge\w+(?:t|en)|\w+(?:iert|bezahlt|kauft))\b"
    r"|\b(?:ho|ha|hanno|abbiamo|ai|avons|avez|ont)\b.*\w(?:[aiu]to|ée?s?)\b"
    r"|\b\w{3,}(?:ó|ou)\b|\b\w{2,}(?:[аеи]л[аи]?)\b"
)
_FIRST_PERSON = re.compile(
    r"\b(?:i|me|my|mine|we|us|our|ours|ich|mich|mir|mein\w*|wir|unser\w*|je|mon|ma|mes|nous|yo|mi|mis|io|mio|mia"
    r"|eu|meu|minha|ik|mijn|я|мой|моя|мои|мы|наш\w*)\b|[我私僕俺]",
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A case-folded text and the stems of the words in it that say what is stated.

    These, the `core`, are without articles, words such as "now", and the negation, which `is_negated` tells.
    """

    text: str
    core: tuple[str, ...]
    is_negated: bool

    @property
    def is_event(self) -> bool:
        """Whether it says what happened once ("I ran 5 km"), which nothing later makes untrue."""
        return any(map(_is_event, _EVENT.finditer(self.text)))

    @property
    def marks_change(self) -> bool:
        """Whether it says that something is so since lately, or is another than before."""
        words = split_words(self.text)
        is_new = not statement_words.CHANGE_MARKS.isdisjoint(words)
        return is_new or not statement_words.UPDATES.isdisjoint(map(to_term, words))

    @property
    def is_in_first_person(self) -> bool:
        """Whether it depends on the speaker whom it is about."""
        return bool(_FIRST_PERSON.search(self.text))


def read_statement(text: str) -> Statement:
    """Return the statement of the beginning of a text."""
    text = text[:MAX_CHARS].casefold().replace("\u2019", "'").replace("n't", " not")
    words = split_words(text)
    is_negated = not statement_words.NEGATIONS.isdisjoint(words)
    skipped = _IN_NEGATIONS if is_negated else _SAYS_NOTHING
    root = stem if text.isascii() else to_term
    core = tuple([root(word) for word in words if word not in skipped])
    return Statement(text, core, is_negated)


def split_words(text: str) -> list[str]:
    """Return the words, numbers and signs of currencies of a case-folded text."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def to_term(word: str) -> str:
    """Return the form of a case-folded word in which it is compared."""
    return stem(word) if word.isascii() else word


def _is_event(match: re.Match[str]) -> bool:
    verb = match["verb"]
    if verb is None:
        return True
    return not (match["state"] or verb in statement_words.NO_EVENTS or stem(verb) in statement_words.UPDATES)
