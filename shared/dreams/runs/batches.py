"""Which entries are shown to the model together.

A scope of up to `limit` entries is shown whole. Of a larger one only what changed is, each with its
near-duplicates: so a run costs by what is new, not by what there is. Candidates come from an index of
words, rarest first: two texts of which 60 % of the words agree share one of the rarest 40 % of either
(the prefix filter of similarity joins), and two texts about the same thing, which a vector may show,
share a rare name or subject. Each search is bounded, so that a thousand copies of one text stay cheap;
what is missed changes nothing and can be found another time.

Small groups are packed into one list, since a list is a call to the model. Nobody's entries are shown
with another user's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import ceil

from shared.dreams.verification import similarity
from shared.foundation.scope import Scope
from shared.infra.embedder import Vector
from shared.memory.longterm.memory import Memory

MAX_BATCH = 1000
_MOST_CANDIDATES = 200
_RARE = 50
"""A word in at most so many entries is rare enough to bring them together."""


def build_batches(
    entries: Sequence[Memory],
    changed: AbstractSet[str],
    vectors: Mapping[str, Vector] | None = None,
    limit: int = MAX_BATCH,
) -> list[list[str]]:
    """Return ids to show together, at most `limit` in a list; no id twice, nothing of an unchanged scope."""
    shown: list[list[str]] = []
    for owned in _by_scope(entries).values():
        fresh = [entry.id for entry in owned if entry.id in changed]
        if fresh and len(owned) <= limit:
            shown.append([entry.id for entry in owned])
        elif fresh:
            shown += _packed(_Neighbourhood(owned, vectors or {}).groups(fresh), limit)
    return shown


def ids_to_compare(entries: Sequence[Memory], changed: AbstractSet[str]) -> list[str]:
    """Return the ids whose vectors `clusters` would look at: what changed first, then what may be near."""
    fresh, near = [], []
    for owned in _by_scope(entries).values():
        mine = [entry.id for entry in owned if entry.id in changed]
        fresh += mine
        near += _Neighbourhood(owned, {}).candidates(mine) if mine else []
    return list(dict.fromkeys([*fresh, *near]))


def _by_scope(entries: Iterable[Memory]) -> dict[Scope, list[Memory]]:
    owned: dict[Scope, list[Memory]] = {}
    for entry in entries:
        owned.setdefault(entry.scope, []).append(entry)
    return owned


def _packed(groups: Iterable[list[str]], limit: int) -> list[list[str]]:
    """Put groups into as few lists as keeping each together allows; what is over the limit is cut."""
    packed: list[list[str]] = []
    for group in groups:
        for start in range(0, len(group), limit):
            part = group[start : start + limit]
            if packed and len(packed[-1]) + len(part) <= limit:
                packed[-1] += part
            else:
                packed.append(part)
    return packed


class _Neighbourhood:
    """The entries of one scope by their words."""

    def __init__(self, entries: Sequence[Memory], vectors: Mapping[str, Vector]) -> None:
        self._words = {entry.id: similarity.words_of(entry.content) for entry in entries}
        self._vectors = vectors
        self._spread = Counter(word for words in self._words.values() for word in words)
        self._holders: dict[str, list[str]] = {}
        for id_ in self._words:
            for word in self._telling(id_):
                self._holders.setdefault(word, []).append(id_)

    def groups(self, fresh: Iterable[str]) -> list[list[str]]:
        """Return each fresh entry with its near-duplicates; groups that share an entry are one."""
        group_of: dict[str, list[str]] = {}
        for id_ in fresh:
            together = {id(group_of.get(near, near)): group_of.get(near, [near]) for near in self._near(id_)}
            joined = list(dict.fromkeys(member for group in together.values() for member in group))
            group_of.update(dict.fromkeys(joined, joined))
        return list({id(group): group for group in group_of.values()}.values())

    def candidates(self, fresh: Iterable[str]) -> list[str]:
        """Return the entries that share a telling word with any of these."""
        return [other for id_ in fresh for other in self._candidates(id_)]

    def _near(self, id_: str) -> list[str]:
        return [id_, *(other for other in self._candidates(id_) if self._are_near(id_, other))]

    def _candidates(self, id_: str) -> list[str]:
        """Return those that share a telling word, by how many, as many as are worth a look."""
        shared = Counter(other for word in self._telling(id_) for other in self._some(word) if other != id_)
        return [other for other, _ in shared.most_common(_MOST_CANDIDATES)]

    def _some(self, word: str) -> list[str]:
        return self._holders.get(word, [])[: 10 * _MOST_CANDIDATES]

    def _telling(self, id_: str) -> Iterator[str]:
        """Yield the words by which an entry can be found: the prefix of its rarest, and all that are rare."""
        by_rarity = sorted(self._words[id_], key=lambda word: (self._spread[word], word))
        prefix = len(by_rarity) - ceil(similarity.MIN_SHARED_WORDS * len(by_rarity)) + 1
        for place, word in enumerate(by_rarity):
            if place < prefix or 1 < self._spread[word] <= _RARE:
                yield word

    def _are_near(self, one: str, other: str) -> bool:
        if similarity.words_are_similar(self._words[one], self._words[other]):
            return True
        first, second = self._vectors.get(one), self._vectors.get(other)
        return first is not None and second is not None and similarity.vectors_are_similar(first, second)
