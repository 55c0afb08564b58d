"""Detect from a user's turn alone whether it corrects the agent.

A false positive costs more than a miss. It makes the agent learn a mistake that nobody made, while
a user who is missed usually objects again. Therefore a bare "no" is an answer and not a correction,
`no, thanks` and `actually, that's great` are polite, and quoted or pasted text is ignored because
it is not the user's own. `phrases.txt` has the phrases of corrections and the phrases that cancel
them.
"""

import re

from shared.conversation.feedback.phrases import FAULT, HYPOTHETICAL, POLITE_REFUSAL, REFUSAL, normalize

# A complaint comes before or after pasted text, so only the start and the end of a long turn are examined.
_MAX_EXAMINED = 20_000
_MAX_HEAD = _MAX_TAIL = 1500
# Refusals open a turn; in the middle of a longer account, the same words mean something else.
_OPENING_SENTENCES = 2

_PASTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]{0,200}`|^[ \t]*>[^\n]*$"
    r"|\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|«[^»\n]{0,300}»|「[^」\n]{0,300}」",
    re.DOTALL | re.MULTILINE,
)
# "No! The other one." is an objection like "No, the other one.".
_EXCLAIMED = re.compile(r"^(\w{1,5})!{1,5}(?=\s)")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。\n]|(?<=[!?])")
_CLAUSE_END = re.compile(r"[,;:、—\u2013]|\s-\s|\b(?:but|aber|mais|pero|ma|mas|maar|но)\b|但")


def is_correction(text: str) -> bool:
    """Return whether a user's turn says, in one of ten languages, that the agent was wrong."""
    parts = (part.strip() for part in _SENTENCE_END.split(_remove_pasted_text(text)))
    sentences = [part for part in parts if part]
    return any(map(_refuses, sentences[:_OPENING_SENTENCES])) or any(map(_finds_fault, sentences))


def _remove_pasted_text(text: str) -> str:
    words = _PASTED.sub(" ", text[:_MAX_EXAMINED])
    if len(words) > _MAX_HEAD + _MAX_TAIL:
        words = f"{words[:_MAX_HEAD]}\n{words[-_MAX_TAIL:]}"
    return _EXCLAIMED.sub(r"\1,", normalize(words).strip())


def _refuses(sentence: str) -> bool:
    refusal = REFUSAL.match(sentence)
    if refusal is None:
        return False
    remainder = sentence[refusal.end() :].strip(" ,;:-")
    return bool(remainder) and POLITE_REFUSAL.match(remainder) is None


def _finds_fault(sentence: str) -> bool:
    fault = FAULT.search(sentence)
    return fault is not None and HYPOTHETICAL.search(_clause_before(sentence, fault.start())) is None


def _clause_before(sentence: str, position: int) -> str:
    return _CLAUSE_END.split(sentence[:position])[-1]
