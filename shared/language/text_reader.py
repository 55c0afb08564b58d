"""Read each text of a batch once, however many statements are compared with it.

A text may be as long as a document, and a reply may make a hundred statements of it. What was read is
forgotten with the batch.
"""

from collections.abc import Sequence

from shared.language import person, swaps, wording
from shared.language.specifics import ParsedText
from shared.language.swaps import Clause
from shared.language.text_parser import parse_text
from shared.language.wording import Span

MAX_CHARACTERS = 20_000
"""Characters of a text that are read: a statement about the rest is in doubt."""


class TextReader:
    """What was read of the texts of a batch, by text."""

    def __init__(self) -> None:
        self._clauses: dict[str, list[Clause]] = {}
        self._spans: dict[str, list[tuple[Span, frozenset[str]]]] = {}
        self._parsed: dict[str, ParsedText] = {}
        self._names: dict[str, frozenset[str]] = {}

    def clauses(self, text: str) -> Sequence[Clause]:
        """Return the clauses of a text with their names and quantities."""
        if text not in self._clauses:
            self._clauses[text] = swaps.read_clauses(text[:MAX_CHARACTERS])
        return self._clauses[text]

    def spans(self, text: str) -> Sequence[tuple[Span, frozenset[str]]]:
        """Return the runs of clauses of a text, with the stems of each."""
        if text not in self._spans:
            spans = wording.spans(text[:MAX_CHARACTERS])
            self._spans[text] = [(span, wording.content_stems(span.text)) for span in spans]
        return self._spans[text]

    def parsed(self, text: str) -> ParsedText:
        """Return the specifics of a text. The caller must not change them."""
        if text not in self._parsed:
            self._parsed[text] = parse_text(text[:MAX_CHARACTERS])
        return self._parsed[text]

    def names(self, text: str) -> frozenset[str]:
        """Return the words of a text that a capital within a sentence shows to be names."""
        if text not in self._names:
            self._names[text] = frozenset(person.names_in(text[:MAX_CHARACTERS]))
        return self._names[text]
