"""Tell whether a passage speaks of the same subject as a statement: of its writer, or of who is named."""

from collections.abc import Sequence

from shared.language import common_words, named_days, person
from shared.language.wording import Match


class Subjects:
    """Whom a statement and its nearest passage speak of.

    A word is a name if a capital within a sentence shows it somewhere in the statement, the passage or the
    context, or if it begins the statement and is not known to begin sentences.
    """

    def __init__(
        self, statement: str, match: Match, asked: Sequence[str], names_of_context: frozenset[str]
    ) -> None:
        self._statement = statement
        self._match = match
        self._asked = asked
        known = names_of_context.union(person.first_name(statement), person.names_in(statement))
        known |= person.names_in(match.span.sentence)
        self._known = known - named_days.ALL_NAMES - common_words.USER_WORDS
        self._words = frozenset(person.words_of(statement))

    def are_same(self) -> bool:
        """Tell whether the passage says of its subject what the statement says of the same."""
        clause = self._match.span.text
        if person.is_about_user(self._statement):
            return self._is_said_of_writer(clause)
        if person.has_writer_as_subject(clause) and not person.names_user(self._statement):
            return False
        if self._names(self._statement) <= frozenset(person.words_of(clause)):
            return self._names(clause) <= self._words
        is_third = any(map(person.is_about_third, (clause, *self._asked)))
        sentence = self._match.span.sentence
        return is_third and self._names(sentence) | person.first_name(sentence) <= self._words

    def _is_said_of_writer(self, clause: str) -> bool:
        is_asked = any(map(person.is_about_reader, self._asked))
        is_fragment = self._match.covered == self._match.used == 1.0
        may_be_writer = (is_asked or is_fragment) and not person.is_about_own(clause)
        if not (may_be_writer or person.is_about_writer(clause)) or not self._names(clause) <= self._words:
            return False
        return not person.is_about_third(clause) or bool(self._names(self._statement))

    def _names(self, text: str) -> frozenset[str]:
        return self._known & frozenset(person.words_of(text))
