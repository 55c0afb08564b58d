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

from shared.dreams import negation, specifics
from shared.dreams.rejection import Code
from shared.index import words
from shared.longterm.record import Entry

_MOST_WORDS = 30
# Who a memory is about is in each of them, and tells nothing.
_ACTORS = frozenset(words.words("user users agent assistant"))


@dataclass(frozen=True, slots=True)
class Fault:
    """What a merge got wrong, and the words it is about: lost ones, or those too many."""

    code: Code
    detail: str
    words: tuple[str, ...]


def fault(content: str, sources: Sequence[Entry]) -> Fault | None:
    """Return the first thing by which `content` is untrue to its sources."""
    said = specifics.read(content)
    texts = [entry.content for entry in sources]
    lost = [word for text in texts for word in specifics.read(text).missing_in(said)]
    if lost := [*_days_untold(said, sources), *lost]:
        return _fault(Code.LOSES_SPECIFICS, "the text lost these of its sources", lost)
    if thin := [word for text in texts for word in _gist_missing(text, content)]:
        return _fault(Code.LOSES_GIST, "of a source hardly a word is left; these are gone", thin)
    if turned := negation.turned(content, texts):
        return _fault(Code.REVERSES, "these are denied in the sources or in the text, not in both", turned)
    if new := said.hard_missing_in(specifics.read("\n".join(map(_all_told, sources)))):
        return _fault(Code.INVENTS, "no source has these", new)
    return None


def _fault(code: Code, detail: str, found: Iterable[str]) -> Fault:
    return Fault(code, detail, tuple(dict.fromkeys(found))[:_MOST_WORDS])


def _days_untold(said: specifics.Reading, sources: Sequence[Entry]) -> list[str]:
    days = sorted({e.occurred_at.astimezone(UTC).date().isoformat() for e in sources if e.occurred_at})
    return [day for day in days if day not in said.days] if len(days) > 1 else []


def _gist_missing(source: str, content: str) -> list[str]:
    """Return the telling words that are gone, if more are gone than a rewording would replace.

    A quarter must be left, names aside. In scripts without capitals, where names can't be told from
    other words, it is half.
    """
    names = {term for name in specifics.read(source).capitals for term in words.words(name)}
    telling = [term for term in words.query_words(source) if term not in _ACTORS and term not in names]
    here = set(words.words(content))
    gone = [term for term in telling if term not in here]
    needed = sum(0.25 if term.upper() != term.lower() else 0.5 for term in telling)
    return gone if len(telling) - len(gone) < needed else []


def _all_told(entry: Entry) -> str:
    """Return all that a model was shown of an entry, in which a name of its text may have its root."""
    days = [moment.date().isoformat() for moment in (entry.occurred_at, entry.created_at) if moment]
    labels = (entry.category or "", *entry.tags, *entry.metadata.values())
    return "\n".join([entry.content, *labels, *days])
