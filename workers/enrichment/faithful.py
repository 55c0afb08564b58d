"""Check that the rewriting of a note keeps what can't be guessed again, and invents nothing.

The memories made of a note together have every name, acronym, number, date and negation of it, and none
that it lacks, and they say of none what the note says of another. The texts are parsed as for a merge
(`shared.dreams.verification`). A note differs from its rewriting in ways in which memories that are merged
don't: small talk is left out, "tomorrow" becomes a date (`named_days`), and a word at the start of a
sentence may go unless it looks like a name.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date

from shared.dreams.verification.fidelity import Fault
from shared.dreams.verification.rejection import RejectionCode
from shared.language import common_words, named_days, negation, quantities, swaps, unmarked_words
from shared.language.specifics import Kind, ParsedText, Specific
from shared.language.text_parser import parse_text
from shared.memory.longterm.memory import Memory
from workers.enrichment import negators
from workers.enrichment.openers import is_opener

_MAX_WORDS = 30
_MIN_ABBREVIATION = 3
# What only answers, a wish for the reader's health, and "Three things:".
_SMALL_TALK = re.compile(
    r"(?:^|(?<=[.!?] ))[ \t]*(?:(?:no|nope|nein|non|нет)[,!](?=\s)|hope (?:you|this|all)\b[^.!?\n]*[.!?]*"
    r"|\w+ (?:things|points|notes|facts|items|updates|reminders)[^.:\n]{0,20}:)",
    re.IGNORECASE | re.MULTILINE,
)
_ASIDE = frozenset({"fyi", "btw", "imo", "imho", "tldr", "lol", "ps", "nb", "iirc", "afaik", "fwiw"})
# The number of an item of a list: at the start of a line or of a sentence, or in brackets.
_LIST_NUMBER = re.compile(
    r"(?:^|(?<=[.!?:] ))[ \t]*\(?\d{1,2}[.)](?=\s+\S)|(?<=\s)\(?\d{1,2}\)(?=\s)", re.MULTILINE
)
_LAST_NUMBER = re.compile(r"\s\((\w{1,8})\)$")
_STOP = re.compile(r"\b(?:please )?(?:stop|quit)(?= \w+ing\b)", re.IGNORECASE)
_BOTH = frozenset({"both", "pair", "couple", "beide", "beiden", "deux", "ambos", "ambas", "entrambi"})


def first_fault(contents: Sequence[str], note: str, raw_memory: Memory) -> Fault | None:
    """Return what the memories made of a note lost of it, added to it or denied otherwise; None for nothing.

    `note` is the whole content of the raw memory or a part of it. What the memories add may come from
    everything that the model was shown of the raw memory.
    """
    text = "\n".join(map(_without_number, contents))
    rewriting = parse_text(text)
    named_days.add_names_of_days(rewriting, _written_on(raw_memory))
    plain_note = _STOP.sub("do not", _SMALL_TALK.sub(" ", _LIST_NUMBER.sub(" ", note)))
    lost_words = [*_lost_words(rewriting, plain_note), *unmarked_words.lost_words(plain_note, text)]
    if lost_words:
        return _fault(RejectionCode.LOSES_SPECIFICS, "the rewriting lost words of the note", lost_words)
    denials = negation.changed_negations(text, [plain_note]) or negators.lost_negators(plain_note, text)
    if denials:
        return _fault(RejectionCode.CHANGES_NEGATION, "the rewriting changed what is denied", denials)
    if swapped_words := swaps.swapped_words(text, [plain_note]):
        return _fault(
            RejectionCode.SWAPS_SPECIFICS,
            "the rewriting says of one what the note says of another",
            swapped_words,
        )
    if added_words := _added_words(rewriting, raw_memory):
        return _fault(RejectionCode.ADDS_SPECIFICS, "the rewriting invented words", added_words)
    return None


def _without_number(content: str) -> str:
    """Return what the model wrote without the number that it gave it: "1. …", "… (two)"."""
    match = _LAST_NUMBER.search(content)
    if match and _is_number(match[1]):
        content = content[: match.start()]
    return _LIST_NUMBER.sub(" ", content)


def _is_number(word: str) -> bool:
    return word.isdecimal() or quantities.spelled(word.casefold()) is not None


def _fault(code: RejectionCode, detail: str, words: Sequence[str]) -> Fault:
    return Fault(code, detail, tuple(dict.fromkeys(words))[:_MAX_WORDS])


def _lost_words(rewriting: ParsedText, note: str) -> list[str]:
    parsed_note = parse_text(note)
    lost_specifics = [
        specific.wording
        for specific in parsed_note.specifics
        if not rewriting.contains(specific) and not _may_go(specific, note, rewriting)
    ]
    return [*lost_specifics, *named_days.lost_names(parsed_note, rewriting)]


def _may_go(specific: Specific, note: str, rewriting: ParsedText) -> bool:
    """Tell whether a rewriting may leave out or replace what was parsed as a specific."""
    match specific.kind:
        case Kind.SENTENCE_START:
            return _is_ordinary_word(specific.key, note, rewriting)
        case Kind.ACRONYM:
            return specific.key in _ASIDE
        case Kind.VERBATIM:  # "Mon/Wed/Fri"
            parts = specific.key.split("/")
            return all(part.isalpha() and part in rewriting.words for part in parts)
    return False


def _is_ordinary_word(word: str, note: str, rewriting: ParsedText) -> bool:
    """Tell whether a word at the start of a sentence is no name.

    It is none if it is known as an ordinary word, if the note has it in lower case, too, or if the
    rewriting has a longer form of it in lower case ("Prod", "production").
    """
    if is_opener(word) or quantities.spelled(word) or re.search(rf"\b{re.escape(word)}\b", note):
        return True
    lower_words = rewriting.words - rewriting.capitals
    return len(word) >= _MIN_ABBREVIATION and any(other.startswith(word) for other in lower_words)


def _added_words(rewriting: ParsedText, raw_memory: Memory) -> list[str]:
    labels = (raw_memory.category or "", *raw_memory.tags, *raw_memory.metadata.values())
    shown = parse_text("\n".join([raw_memory.content, *labels]))
    named_days.add_meant_days(shown, _written_on(raw_memory))
    if not _BOTH.isdisjoint(shown.words):
        shown.numbers.setdefault("2", set()).add("")
    return [
        word
        for word in rewriting.certain_missing_in(shown)
        if word.casefold() not in common_words.USER_WORDS and not _counts_names(word, shown)
    ]


def _written_on(raw_memory: Memory) -> set[date]:
    moments = (raw_memory.occurred_at, raw_memory.created_at)
    return {moment.astimezone(UTC).date() for moment in moments if moment}


def _counts_names(word: str, shown: ParsedText) -> bool:
    """Tell whether a word is a small number that may count what the note names: "two children"."""
    number = quantities.spelled(word.casefold())
    return number is not None and number.isdecimal() and int(number) <= len(set(shown.names))
