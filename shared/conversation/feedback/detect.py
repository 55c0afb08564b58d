"""Detect from a user's turn, and the assistant's turn before it, whether it corrects the agent.

A false positive costs more than a miss. It makes the agent learn a mistake that nobody made, while
a user who is missed usually objects again. Therefore `no, thanks` and `actually, that's great` are
polite, a `no` after a question is its answer, a user who corrects himself corrects nobody else, and
quoted or pasted text is ignored because it is not the user's own.

Each structure has a score in 0..1, and the highest counts: a denial of what the assistant stated, a
refusal, a contrast (`five, not four`), a fault found with what was done, or a request to undo it. The
words of these structures stand in `phrases.txt`. Between `DOUBTFUL_SCORE` and `SURE_SCORE` a turn is
doubtful, and a model may judge it (`judge.py`).
"""

import re

from shared.conversation.feedback import previous_turn, sentence
from shared.conversation.feedback.phrases import (
    ACTUALLY,
    AFFIRMATION,
    CONTRAST,
    DENIED_FIRST,
    DOUBTFUL_FAULT,
    EXCESS,
    EXISTENCE,
    FACT,
    FAULT,
    HYPOTHETICAL,
    NEGATION,
    ONLY,
    OWN_ANSWER,
    OWN_LACK,
    OWN_MISTAKE,
    OWN_NEGATION,
    POLITE_REFUSAL,
    REFUSAL,
    STALE,
    WANTED,
    WISH,
)
from shared.conversation.feedback.previous_turn import Form, PreviousTurn
from shared.conversation.feedback.sentence import Sentence

SURE_SCORE = 0.75
COUNTED_SCORE = 0.5
DOUBTFUL_SCORE = 0.35

# Refusals open a turn; in the middle of a longer account, the same words mean something else.
_OPENING_SENTENCES = 2
# A longer turn is no reply to the assistant's sentence: the turn before is not read for it.
_MAX_REPLY = 1000
_MAX_DENIAL_WORDS = 20
_MAX_EXCLAMATION_WORDS = 6
_CLAUSE_END = re.compile(r"[,;:、—\u2013]|\s-\s|\b(?:but|aber|mais|pero|ma|mas|maar|но)\b|但")
_DIGIT = re.compile(r"\d")
_PLEASE = re.compile(r"\b(?:please|bitte|por favor|s'il (?:te|vous) plait|per favore|alstublieft)\b")


def is_correction(text: str, previous: str | None = None) -> bool:
    """Return whether a user's turn says, in one of ten languages, that the agent was wrong."""
    return score(text, previous) >= COUNTED_SCORE


def needs_previous(text: str, own_score: float) -> bool:
    """Tell whether the assistant's turn before can change the score that a user's turn has without it."""
    if len(text) > _MAX_REPLY:
        return False
    openings = [part.words for part in sentence.split(text)[:_OPENING_SENTENCES]]
    patterns = (NEGATION, EXCESS, STALE, AFFIRMATION, _DIGIT)
    return 0 < own_score < SURE_SCORE or any(
        pattern.search(words) for words in openings for pattern in patterns
    )


def score(text: str, previous: str | None = None) -> float:
    """Return in 0..1 how likely a user's turn corrects the agent.

    `previous` is the assistant's turn before it, None if there is none or it is not known.
    """
    sentences = sentence.split(text)
    if any(OWN_MISTAKE.search(part.words) for part in sentences):
        return 0
    context = previous_turn.read(previous if len(text) <= _MAX_REPLY else None)
    openings = sentences[:_OPENING_SENTENCES]
    scores = [_fault_score(part, context) for part in sentences]
    scores += [
        rule(part.words, context) for part in openings if not part.is_question for rule in _OPENING_RULES
    ]
    return max(scores, default=0)


def _fault_score(part: Sentence, context: PreviousTurn) -> float:
    """Score a fault found in words of the whole sentence. Too much of a good thing does not exist."""
    if EXCESS.search(part.words) and EXISTENCE.search(part.words):
        return 0
    fault = FAULT.search(part.words)
    if fault is not None and not _is_hypothetical(part.words, fault.start()):
        if part.is_question:
            return 0.7 if fault.start() == 0 else 0
        return 0.9
    doubtful = DOUBTFUL_FAULT.search(part.words)
    if doubtful is None or _is_hypothetical(part.words, doubtful.start()):
        return 0
    if part.is_question:
        return 0.4 if doubtful.start() == 0 else 0
    return {Form.UNKNOWN: 0.6, Form.STATEMENT: 0.8, Form.QUESTION: 0.4}[context.form]


def _is_hypothetical(words: str, position: int) -> bool:
    return HYPOTHETICAL.search(_CLAUSE_END.split(words[:position])[-1]) is not None


def _refusal_score(words: str, context: PreviousTurn) -> float:
    """Score `no, …`: an answer to a question, else a denial, unless it is about the user."""
    refusal = REFUSAL.match(words)
    if refusal is None:
        return 0
    remainder = words[refusal.end() :].strip(" ,;:-")
    if not remainder or POLITE_REFUSAL.match(remainder) or context.form is Form.QUESTION:
        return 0
    is_statement = context.form is Form.STATEMENT
    if OWN_NEGATION.match(remainder):
        return 0.4 if is_statement else 0.2
    if OWN_ANSWER.match(remainder):
        return 0.65 if is_statement else 0.25
    if ONLY.match(remainder):
        return 0.5 if is_statement else 0.3
    return 0.85 if is_statement else 0.55


def _actually_score(words: str, context: PreviousTurn) -> float:
    """Score `actually, …`: it corrects if a fact follows, and not a wish or praise."""
    opening = ACTUALLY.match(words)
    if opening is None or context.form is Form.QUESTION:
        return 0
    remainder = words[opening.end() :].strip(" ,;:-")
    if not remainder or POLITE_REFUSAL.match(remainder) or WISH.search(remainder):
        return 0
    return 0.65 if FACT.search(f"{opening.group()} {remainder}") else 0.3


def _contrast_score(words: str, context: PreviousTurn) -> float:
    """Score `five, not four` and `not five, four`."""
    contrast = CONTRAST.match(words) or DENIED_FIRST.search(words)
    if contrast is None or WANTED.match(words) or HYPOTHETICAL.search(words) or _is_courteous(words):
        return 0
    return {Form.UNKNOWN: 0.7, Form.STATEMENT: 0.85, Form.QUESTION: 0.3}[context.form]


def _is_courteous(words: str) -> bool:
    return _PLEASE.search(words) is not None or POLITE_REFUSAL.match(words) is not None


def _denial_score(words: str, context: PreviousTurn) -> float:
    """Score a statement that denies something of which the assistant spoke."""
    is_polite = POLITE_REFUSAL.match(words) is not None and OWN_ANSWER.match(words) is None
    if context.form is Form.QUESTION or is_polite or HYPOTHETICAL.search(words):
        return 0
    is_statement, shares_word = context.form is Form.STATEMENT, context.shares_word_with(words)
    if AFFIRMATION.match(words):
        return 0.8 if is_statement else 0.4
    number_of_words = len(words.split())
    if EXCESS.search(words) and number_of_words <= _MAX_EXCLAMATION_WORDS:
        return 0.8 if shares_word else 0.6 if is_statement else 0.4
    return _shared_topic_score(words, context) if shares_word and number_of_words <= _MAX_DENIAL_WORDS else 0


def _shared_topic_score(words: str, context: PreviousTurn) -> float:
    """Score a sentence about what the assistant spoke of: a negation or another number contradicts it."""
    if OWN_LACK.match(words):
        return 0.4
    if NEGATION.search(words) or STALE.search(words):
        return 0.8
    return 0.6 if FACT.search(words) and context.has_other_numbers(words) else 0


_OPENING_RULES = (_refusal_score, _actually_score, _contrast_score, _denial_score)
