"""Signs of doubt: what code can see, without reading, of a statement that its evidence may not say.

They decide only while no judge is trusted, and never refuse: what has a sign is held, until a judge or a
caller decides. So a sign may be wrong often. What must be rare is a false statement without one: a statement
has none only if one passage of the evidence says nearly the same in nearly the same words, of the same
subject.
"""

from collections.abc import Sequence
from datetime import date
from enum import StrEnum

from shared.foundation.roles import Role
from shared.language import common_words, named_days, negation, person, swaps, wording
from shared.language.cues import cues_of
from shared.language.specifics import ParsedText
from shared.language.text_parser import parse_text
from shared.language.wording import Match
from shared.verification.claim import Evidence


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
MIN_RETOLD_USED = 0.6
"""Share of the words of a retelling that its sources have."""


def signs_of_statement(
    statement: str, evidence: Sequence[Evidence], context: Sequence[str] = ()
) -> set[Sign]:
    """Return the signs of a statement about what somebody said.

    `context` are earlier texts of the same writer, which may name whom a pronoun means.
    """
    said = [item.text for item in evidence if item.speaker != Role.ASSISTANT]
    asked = [item.text for item in evidence if item.speaker == Role.ASSISTANT]
    if any(map(negation.is_denying_answer, said)):
        asked = []
    parsed, specifics = parse_text(statement), _said_specifics(evidence, context)
    match = wording.nearest(statement, said, _allowed(statement, specifics, asked, context))
    signs = set[Sign]()
    if any(not _is_user_word(word) for word in parsed.certain_missing_in(specifics)):
        signs.add(Sign.ADDED)
    if match is None or match.covered < MIN_COVERED or match.used < MIN_USED:
        return signs | {Sign.OTHER_WORDS}
    signs |= {Sign(cue) for cue in cues_of(match.span.sentence) - cues_of(statement)}
    if negation.denies(statement) is not negation.denies(negation.without_answer(match.span.text)):
        signs.add(Sign.NEGATION)
    if not _Subjects(statement, match, asked, context).are_same():
        signs.add(Sign.SUBJECT)
    return signs


def _days_of(evidence: Sequence[Evidence]) -> set[date]:
    return {date.fromisoformat(item.date[:10]) for item in evidence if item.date}


def _is_user_word(word: str) -> bool:
    return word.casefold() in common_words.USER_WORDS


def signs_of_retelling(text: str, evidence: Sequence[Evidence], labels: Sequence[str] = ()) -> set[Sign]:
    """Return the signs of a text that retells notes or memories, which were written to be kept.

    It may leave things out: the sources stay as evidence. `labels` are what the model was shown beside them.
    """
    sources = [item.text for item in evidence]
    shown = parse_text("\n".join([*sources, *labels]))
    written_on = _days_of(evidence)
    named_days.add_meant_days(shown, written_on)
    named_days.add_near_years(shown, written_on)
    match = wording.nearest(text, sources, wording.content_stems("\n".join([*labels, *_days_in(shown)])))
    is_near = match is not None and match.covered >= MIN_RETOLD and match.used >= MIN_RETOLD_USED
    said = "" if match is None else match.span.text
    found = {
        Sign.ADDED: any(not _is_user_word(word) for word in parse_text(text).certain_missing_in(shown)),
        Sign.NEGATION: negation.denies(text) is not negation.denies(said),
        Sign.SUBJECT: bool(swaps.swapped_words(text, sources)),
        Sign.OTHER_WORDS: not is_near,
    }
    return {sign for sign, is_found in found.items() if is_found}


def _days_in(shown: ParsedText) -> frozenset[str]:
    return named_days.ALL_NAMES & shown.words


def _allowed(
    statement: str, specifics: ParsedText, asked: Sequence[str], context: Sequence[str]
) -> frozenset[str]:
    """Return the stems that a statement may have from elsewhere.

    They are those of the question that was answered, those of earlier sentences that name whom the statement
    names, and the names of days that the evidence means.
    """
    names = person.names_in(statement) | person.first_name(statement)
    about = [
        span.sentence
        for text in context
        for span in wording.spans(text)
        if not names.isdisjoint(person.words_of(span.sentence))
    ]
    days = named_days.ALL_NAMES & specifics.words
    return wording.content_stems("\n".join([*asked, *dict.fromkeys(about), *days]))


def _said_specifics(evidence: Sequence[Evidence], context: Sequence[str]) -> ParsedText:
    """Return what a statement may have: numbers and days of the evidence, names of the context."""
    said = parse_text("\n".join(item.text for item in evidence))
    written_on = _days_of(evidence)
    named_days.add_meant_days(said, written_on)
    named_days.add_near_years(said, written_on)
    names = parse_text("\n".join(context))
    said.text = f"{said.text}\n{names.text}"
    said.words |= names.words
    said.capitals |= names.capitals
    said.acronyms |= names.acronyms
    said.pieces |= names.pieces
    return said


class _Subjects:
    """Whom a statement and a passage speak of: a word is a name if a capital within a sentence shows it."""

    def __init__(self, statement: str, match: Match, asked: Sequence[str], context: Sequence[str]) -> None:
        self._statement = statement
        self._match = match
        self._asked = asked
        texts = [statement, match.span.sentence, *context]
        known = frozenset[str]().union(person.first_name(statement), *map(person.names_in, texts))
        self._known = known - named_days.ALL_NAMES - common_words.USER_WORDS

    def are_same(self) -> bool:
        """Tell whether a passage says of its subject what the statement says of the same."""
        clause = self._match.span.text
        if person.is_about_user(self._statement):
            return self._is_said_of_writer(clause)
        if person.has_writer_as_subject(clause) and not person.names_user(self._statement):
            return False
        words = frozenset(person.words_of(self._statement))
        if self._names(self._statement) <= frozenset(person.words_of(clause)):
            return self._names(clause) <= words
        is_third = any(map(person.is_about_third, (clause, *self._asked)))
        sentence = self._match.span.sentence
        return is_third and self._names(sentence) | person.first_name(sentence) <= words

    def _is_said_of_writer(self, clause: str) -> bool:
        is_asked = any(map(person.is_about_reader, self._asked))
        is_fragment = self._match.covered == self._match.used == 1.0
        may_be_writer = (is_asked or is_fragment) and not person.is_about_own(clause)
        is_writer = may_be_writer or person.is_about_writer(clause)
        if not is_writer or not self._names(clause) <= frozenset(person.words_of(self._statement)):
            return False
        return not person.is_about_third(clause) or bool(self._names(self._statement))

    def _names(self, text: str) -> frozenset[str]:
        return self._known & frozenset(person.words_of(text))
