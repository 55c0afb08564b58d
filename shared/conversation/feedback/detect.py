"""Tell from a user's turn alone whether it corrects the agent.

A false hit costs more than a miss: it teaches a mistake that nobody made, while a user who minds
will say so again. So a bare "no" is an answer, not a correction; `no, thanks` and `actually,
that's great` are what they say; and words that the user only quotes or pastes are not theirs.
Signs, and what takes them back, stand in `phrases.txt`.
"""

import re

from shared.conversation.feedback.phrases import FAULT, HYPOTHETICAL, POLITE_REFUSAL, REFUSAL, normalize

# A complaint stands before what is pasted or after it; nothing beyond is read.
_READ = 20_000
_HEAD = _TAIL = 1500
# Where people object: not in the middle of a longer account.
_OPENING_SENTENCES = 2

_PASTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]{0,200}`|^[ \t]*>[^\n]*$"
    r"|\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|«[^»\n]{0,300}»|「[^」\n]{0,300}」",
    re.DOTALL | re.MULTILINE,
)
# "No! The other one." objects as "No, the other one." does.
_EXCLAIMED = re.compile(r"^(\w{1,5})!{1,5}(?=\s)")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。\n]|(?<=[!?])")
_CLAUSE_END = re.compile(r"[,;:、—\u2013]|\s-\s|\b(?:but|aber|mais|pero|ma|mas|maar|но)\b|但")


def is_correction(text: str) -> bool:
    """Tell whether a user's turn says that what the agent said or did is wrong, in any of ten languages."""
    sentences = [one for part in _SENTENCE_END.split(_own_words(text)) if (one := part.strip())]
    return any(map(_refuses, sentences[:_OPENING_SENTENCES])) or any(map(_finds_fault, sentences))


def _own_words(text: str) -> str:
    words = _PASTED.sub(" ", text[:_READ])
    if len(words) > _HEAD + _TAIL:
        words = f"{words[:_HEAD]}\n{words[-_TAIL:]}"
    return _EXCLAIMED.sub(r"\1,", normalize(words).strip())


def _refuses(sentence: str) -> bool:
    refusal = REFUSAL.match(sentence)
    if refusal is None:
        return False
    what = sentence[refusal.end() :].strip(" ,;:-")
    return bool(what) and POLITE_REFUSAL.match(what) is None


def _finds_fault(sentence: str) -> bool:
    fault = FAULT.search(sentence)
    return fault is not None and HYPOTHETICAL.search(_clause_before(sentence, fault.start())) is None


def _clause_before(sentence: str, position: int) -> str:
    return _CLAUSE_END.split(sentence[:position])[-1]
