"""Whether a merged text is true to its sources: nothing that can't be guessed again may go.

Four questions, from sure to suspicious: are the specifics there (`specifics`), is something of each
source there at all, did a "not" come or go (`negation`), and has the text a name or number that no
source has. Each errs towards refusing: a refused merge costs a second attempt, a wrong one a fact.

A happening's time is a specific too. It lies in `occurred_at`, and a merge has only one, so when the
sources' days differ the text must name each (as 2026-05-01).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC

from shared.dreams.verification import common_words, negation, quantities
from shared.dreams.verification.rejection import RejectionCode
from shared.dreams.verification.specifics import ParsedText
from shared.dreams.verification.text_parser import parse_text
from shared.memory.longterm.memory import Memory
from shared.search.text import tokenizer

_MOST_WORDS = 30
_ROOT = 5
"""Letters that two forms of one word share, roughly, in languages that inflect."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a merge got wrong, and the words it is about: lost ones, or those too many."""

    code: RejectionCode
    detail: str
    words: tuple[str, ...]


def first_fault(content: str, sources: Sequence[Memory]) -> Fault | None:
    """Return the first thing by which a merged text is untrue to its sources."""
    if found := lost_content(content, sources):
        return found
    if turned := negation.changed_negations(content, [entry.content for entry in sources]):
        return _fault(
            RejectionCode.CHANGES_NEGATION,
            "these are denied in the sources or in the text, not in both",
            turned,
        )
    if new := parse_text(content).certain_missing_in(parse_text("\n".join(map(_all_told, sources)))):
        return _fault(RejectionCode.ADDS_SPECIFICS, "no source has these", new)
    return None


def lost_content(content: str, sources: Sequence[Memory]) -> Fault | None:
    """Return what of the sources a text lost, whatever it adds."""
    said, told = parse_text(content), [(entry.content, parse_text(entry.content)) for entry in sources]
    lost = [*_days_untold(said, sources), *(word for _, one in told for word in one.missing_in(said))]
    if lost:
        return _fault(RejectionCode.LOSES_SPECIFICS, "the text lost these of its sources", lost)
    present = tokenizer.tokenize(content)
    here = frozenset([*present, *(term[:_ROOT] for term in present)])
    if thin := [word for text, one in told for word in _gist_missing(text, one, here)]:
        return _fault(RejectionCode.LOSES_GIST, "of a source hardly a word is left; these are gone", thin)
    return None


def _fault(code: RejectionCode, detail: str, found: Iterable[str]) -> Fault:
    return Fault(code, detail, tuple(dict.fromkeys(found))[:_MOST_WORDS])


def _days_untold(said: ParsedText, sources: Sequence[Memory]) -> list[str]:
    days = sorted({e.occurred_at.astimezone(UTC).date().isoformat() for e in sources if e.occurred_at})
    return [day for day in days if day not in said.days] if len(days) > 1 else []


def _gist_missing(source: str, read_source: ParsedText, here: frozenset[str]) -> list[str]:
    """Return the telling words that are gone, if more are gone than a rewording would replace.

    A quarter must be left, names and numbers aside; in scripts without capitals, where names can't
    be told from other words, half. Three specifics, which are all there, stand for one such word: an
    address is not lost with the "moved to" before it.
    """
    names = {
        term for name in read_source.names for term in tokenizer.tokenize(name)
    } | common_words.GENERIC_SUBJECTS
    telling = [
        term for term in tokenizer.tokenize_query(source) if term not in names and not _is_quantity(term)
    ]
    gone = [term for term in telling if here.isdisjoint((term, term[:_ROOT]))]
    needed = sum(0.25 if term.upper() != term.lower() else 0.5 for term in telling)
    return gone if len(telling) - len(gone) < needed - len(read_source.specifics) // 3 else []


def _is_quantity(term: str) -> bool:
    return quantities.is_measure(term) or any(character.isdecimal() for character in term)


def _all_told(entry: Memory) -> str:
    """Return all that a model was shown of an entry, in which a name of its text may have its root."""
    days = [
        moment.astimezone(UTC).date().isoformat()
        for moment in (entry.occurred_at, entry.created_at)
        if moment
    ]
    labels = (entry.category or "", *entry.tags, *entry.metadata.values())
    return "\n".join([entry.content, *labels, *days])
