"""The sentences of a user's own words, without what is quoted or pasted."""

import re
from dataclasses import dataclass

from shared.conversation.feedback.phrases import POLITE_QUESTION, QUESTION, normalize

# A complaint comes before or after pasted text, so only the start and the end of a long turn are examined.
_MAX_EXAMINED = 20_000
_MAX_HEAD = _MAX_TAIL = 1500

_PASTED = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>[^\n]*$", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(
    r"`[^`\n]{0,200}`|\"[^\"\n]{0,300}\"|“[^”\n]{0,300}”|„[^“”\n]{0,300}[“”]|«[^»\n]{0,300}»|「[^」\n]{0,300}」|『[^』\n]{0,300}』"
)
# Stands for a quotation: what was quoted says nothing, but it is a word of the sentence.
_QUOTATION = " quotation "
# "No! The other one." is an objection like "No, the other one.".
_EXCLAIMED = re.compile(r"^(\w{1,5})!{1,5}(?=\s)")
_SENTENCE = re.compile(r"[^.!?。\n]*(?:[.](?!\s|$)[^.!?。\n]*){0,200}(?:[.!?。\n]|$)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in normal form. `words` has no final mark, and of a question only the part before it."""

    words: str
    is_question: bool = False


def split(text: str) -> list[Sentence]:
    """Return the sentences of a turn that are the user's own."""
    parts = (part.strip(" \n\t¿¡") for part in _SENTENCE.findall(_own_words(text)))
    return [_read(part) for part in parts if part.strip(".!?。 ")]


def _own_words(text: str) -> str:
    words = _QUOTED.sub(_QUOTATION, _PASTED.sub(" ", text[:_MAX_EXAMINED]))
    if len(words) > _MAX_HEAD + _MAX_TAIL:
        words = f"{words[:_MAX_HEAD]}\n{words[-_MAX_TAIL:]}"
    return _EXCLAIMED.sub(r"\1,", normalize(words).strip())


def _read(part: str) -> Sentence:
    """Read a sentence: a statement before a question counts, and so does a request in a question's form."""
    words = part.rstrip(".!?。 ")
    if not part.endswith("?"):
        return Sentence(words)
    request = POLITE_QUESTION.match(words)
    if request is not None:
        return Sentence(words[request.end() :], is_question=True)
    statement, comma, question = words.rpartition(",")
    if comma and QUESTION.match(question):
        return Sentence(statement)
    return Sentence(words, is_question=True)
