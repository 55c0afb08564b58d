"""Signs of doubt: what code can see, without reading, of a statement that its evidence may not say.

They decide only while no judge is trusted, and never refuse: what has a sign is held, until a judge or a
caller decides. So a sign may be wrong often. What must be rare is a false statement without one: a statement
has none only if one passage of the evidence says nearly the same in nearly the same words, of the same
subject.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from enum import StrEnum

from shared.foundation.roles import Role
from shared.language import common_words, named_days, negation, person, swaps, wording
from shared.language.cues import cues_of
from shared.language.specifics import ParsedText
from shared.language.text_parser import parse_text
from shared.language.text_reader import TextReader
from shared.language.wording import Match
from shared.verification.claim import Evidence
from shared.verification.subjects import Subjects


class Sign(StrEnum):
    """Why a statement is in doubt."""

    ADDED = "added"  # a number, date or name that the evidence lacks
    LOST = "lost"  # a number, date or name of the evidence that is gone
    NEGATION = "negation"  # denied on one side only
    SUBJECT = "subject"  # said of somebody else
    OTHER_WORDS = "other_words"  # no passage says nearly the same
    CONDITION = "condition"
    PLAN = "plan"
    REPORT = "report"
    JOKE = "joke"
    PAST = "past"
    QUESTION = "question"
    CLOSES_SAFETY_MATTER = "closes_safety_matter"  # the statement has no sign, what it would end does


MIN_COVERED = 0.9
"""Share of a statement's words that its passage has."""
MIN_USED = 0.6
"""Share of the passage's words that the statement has: what it leaves out may be its subject."""
MIN_RETOLD = 0.8
"""Share of a retelling's words that its passage has: whoever retells a note makes sentences of it."""


class SignFinder:
    """Finds the signs of the statements of one batch, of whose evidence each text is read once."""

    def __init__(self) -> None:
        self._reader = TextReader()

    def of_statement(self, statement: str, evidence: Sequence[Evidence], context: Sequence[str]) -> set[Sign]:
        """Return the signs of a statement about what somebody said.

        `context` are earlier texts of the same writer, which may name whom a pronoun means.
        """
        said = [item.text for item in evidence if item.speaker != Role.ASSISTANT]
        is_denied = any(map(negation.is_denying_answer, said))
        asked = [item.text for item in evidence if item.speaker == Role.ASSISTANT and not is_denied]
        specifics = self._said_specifics(evidence, context)
        allowed = self._allowed(statement, specifics, asked, context)
        match = self._nearest(statement, said, allowed)
        signs = {Sign.ADDED} if _is_added(statement, specifics) else set[Sign]()
        if match is None or match.covered < MIN_COVERED or match.used < MIN_USED:
            return signs | {Sign.OTHER_WORDS}
        signs |= {Sign(cue) for cue in cues_of(match.span.sentence) - cues_of(statement)}
        if negation.denies(statement) is not negation.denies(negation.without_answer(match.span.text)):
            signs.add(Sign.NEGATION)
        is_swapped = swaps.swapped_in_clauses(statement, self._reader.clauses(match.span.sentence))
        names = frozenset[str]().union(*map(self._reader.names, context))
        if is_swapped or not Subjects(statement, match, asked, names).are_same():
            signs.add(Sign.SUBJECT)
        return signs

    def of_retelling(self, text: str, evidence: Sequence[Evidence], labels: Sequence[str]) -> set[Sign]:
        """Return the signs of a text that retells notes or memories, which were written to be kept.

        It may leave things out: the sources stay as evidence. `labels` are what the model was shown beside
        them.
        """
        sources = [item.text for item in evidence]
        specifics = self._specifics([*sources, *labels], evidence)
        days = named_days.ALL_NAMES & specifics.words
        match = self._nearest(text, sources, wording.content_stems("\n".join([*labels, *days])))
        signs = {Sign.ADDED} if _is_added(text, specifics) else set[Sign]()
        if match is None or match.covered < MIN_RETOLD or match.used < MIN_USED:
            return signs | {Sign.OTHER_WORDS}
        signs |= {Sign(cue) for cue in cues_of(match.span.sentence) - cues_of(text)}
        if negation.denies(text) is not negation.denies(match.span.text):
            signs.add(Sign.NEGATION)
        clauses = [clause for source in sources for clause in self._reader.clauses(source)]
        if swaps.swapped_in_clauses(text, clauses):
            signs.add(Sign.SUBJECT)
        return signs

    def _nearest(self, statement: str, texts: Sequence[str], allowed: frozenset[str]) -> Match | None:
        spans = (span for text in texts for span in self._reader.spans(text))
        return wording.nearest(statement, spans, allowed)

    def _allowed(
        self, statement: str, specifics: ParsedText, asked: Sequence[str], context: Sequence[str]
    ) -> frozenset[str]:
        """Return the stems that a statement may have from elsewhere.

        They are those of the question that was answered, those of earlier sentences that name whom the
        statement names, and the names of days that the evidence means.
        """
        names = person.names_in(statement) | person.first_name(statement)
        sentences = dict.fromkeys(span.sentence for text in context for span, _ in self._reader.spans(text))
        about = [sentence for sentence in sentences if not names.isdisjoint(person.words_of(sentence))]
        days = named_days.ALL_NAMES & specifics.words
        return wording.content_stems("\n".join([*asked, *about, *days]))

    def _said_specifics(self, evidence: Sequence[Evidence], context: Sequence[str]) -> ParsedText:
        """Return what a statement may have: numbers and days of the evidence, names of the context."""
        said = self._specifics([item.text for item in evidence], evidence)
        for text in context:
            names = self._reader.parsed(text)
            said.text = f"{said.text}\n{names.text}"
            _add_names(said, names)
        return said

    def _specifics(self, texts: Iterable[str], evidence: Sequence[Evidence]) -> ParsedText:
        """Return what texts say, with the days that they mean, counted from the days of the evidence."""
        joined = ParsedText()
        for text in texts:
            parsed = self._reader.parsed(text)
            joined.text = f"{joined.text}\n{parsed.text}"
            joined.days |= parsed.days
            joined.times |= parsed.times
            for number, units in parsed.numbers.items():
                joined.numbers.setdefault(number, set()).update(units)
            _add_names(joined, parsed)
        written_on = {date.fromisoformat(item.date[:10]) for item in evidence if item.date}
        named_days.add_meant_days(joined, written_on)
        named_days.add_near_years(joined, written_on)
        return joined


def _add_names(said: ParsedText, others: ParsedText) -> None:
    said.words |= others.words
    said.capitals |= others.capitals
    said.acronyms |= others.acronyms
    said.stems |= others.stems
    said.pieces |= others.pieces


def _is_added(text: str, specifics: ParsedText) -> bool:
    missing = parse_text(text).certain_missing_in(specifics)
    return any(word.casefold() not in common_words.USER_WORDS for word in missing)
