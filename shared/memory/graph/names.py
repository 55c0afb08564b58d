"""Names of entities: when two are the same, and which of them occur in a message.

A name is compared by its words (`tokenizer.words`): neither case, accents nor punctuation count, and of
scripts without spaces each character is a word. A name is looked up by its *key*, its first words. So one
statement finds the names in a message: those whose key is among the message's runs of words. What of a name
is longer than its key is compared afterwards.
"""

from collections.abc import Sequence

from shared.foundation import validation
from shared.search.text import tokenizer

MAX_NAME = 200
MAX_MATCHED_CHARS = 20_000
"""Characters of a message that are searched for names. Of a longer one its first and its last part are."""
MIN_LETTERS = 3
"""A shorter name occurs in nearly every message. A character of a script without spaces counts twice."""
_KEY_WORDS = 6


def check_name(name: str, field: str) -> str:
    """Return a name on one line, with single spaces; raise errors.Invalid for a blank or long one."""
    validation.check_single_line(name, field, MAX_NAME)
    return " ".join(name.split())


def fold(name: str) -> str:
    """Return the words of a name, by which it is compared with others. Names of signs alone keep those."""
    return " ".join(tokenizer.words(name)) or " ".join(name.casefold().split())


def key_of(folded: str) -> str | None:
    """Return the key of a folded name, or None if it is too short to be looked for in messages."""
    words = folded.split()
    letters = sum(len(word) * (2 if tokenizer.is_unspaced(word) else 1) for word in words)
    return " ".join(words[:_KEY_WORDS]) if letters >= MIN_LETTERS else None


def message_words(message: str) -> list[str]:
    """Return the words of a message in which names are looked for."""
    if len(message) <= MAX_MATCHED_CHARS:
        return tokenizer.words(message)
    half = MAX_MATCHED_CHARS // 2
    # Nothing is in both halves at once, and no name consists of this sign alone.
    return [*tokenizer.words(message[:half]), "…", *tokenizer.words(message[-half:])]


def possible_keys(words: Sequence[str]) -> list[str]:
    """Return every run of up to as many words as a key has, each once."""
    runs = (
        " ".join(words[start : start + length])
        for start in range(len(words))
        for length in range(1, min(_KEY_WORDS, len(words) - start) + 1)
    )
    return [run for run in dict.fromkeys(runs) if len(run) >= MIN_LETTERS]


def occurs(folded: str, words: Sequence[str]) -> bool:
    """Return whether all words of a folded name stand beside each other in a message."""
    return f" {folded} " in f" {' '.join(words)} "
