"""Decide which memories are shown to the model together.

A scope of up to `limit` memories is shown whole. Of a larger scope only the changed memories are shown,
each with its near-duplicates, so that the cost of a run depends on what is new and not on the size of
the scope.

Candidates for near-duplicates come from an inverted index of words, the rarest words first. Two texts
that share 60 % of their words also share one of the rarest 40 % of either (the prefix filter of
similarity joins). Two texts about the same subject, which only their vectors show to be similar, share
a rare name or term. Each lookup is bounded, so that a thousand copies of one text stay cheap. A
near-duplicate that is missed stays as it is and can be found by a later run.

Small groups are packed into one batch, because each batch is one call of the model. Memories of
different users are never in the same batch.
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
_MAX_CANDIDATES = 200
_MAX_RARE_COUNT = 50
"""A word that occurs in at most this many memories is rare enough to make them candidates."""


def build_batches(
    memories: Sequence[Memory],
    changed_ids: AbstractSet[str],
    vectors: Mapping[str, Vector] | None = None,
    limit: int = MAX_BATCH,
) -> list[list[str]]:
    """Return batches of at most `limit` ids.

    No id is in two batches. A scope in which nothing changed is in none.
    """
    batches: list[list[str]] = []
    for scope_memories in _by_scope(memories).values():
        changed = _changed_ids(scope_memories, changed_ids)
        if changed and len(scope_memories) <= limit:
            batches.append([memory.id for memory in scope_memories])
        elif changed:
            batches += _pack(_NeighbourIndex(scope_memories, vectors or {}).groups(changed), limit)
    return batches


def ids_to_compare(memories: Sequence[Memory], changed_ids: AbstractSet[str]) -> list[str]:
    """Return the ids whose vectors `build_batches` would read: the changed ones, then their candidates."""
    all_changed, candidates = [], []
    for scope_memories in _by_scope(memories).values():
        changed = _changed_ids(scope_memories, changed_ids)
        all_changed += changed
        candidates += _NeighbourIndex(scope_memories, {}).candidates(changed) if changed else []
    return list(dict.fromkeys([*all_changed, *candidates]))


def _changed_ids(memories: Iterable[Memory], changed_ids: AbstractSet[str]) -> list[str]:
    return [memory.id for memory in memories if memory.id in changed_ids]


def _by_scope(memories: Iterable[Memory]) -> dict[Scope, list[Memory]]:
    by_scope: dict[Scope, list[Memory]] = {}
    for memory in memories:
        by_scope.setdefault(memory.scope, []).append(memory)
    return by_scope


def _pack(groups: Iterable[list[str]], limit: int) -> list[list[str]]:
    """Put whole groups into as few batches as possible; cut a group that is over the limit."""
    batches: list[list[str]] = []
    for group in groups:
        for start in range(0, len(group), limit):
            part = group[start : start + limit]
            if batches and len(batches[-1]) + len(part) <= limit:
                batches[-1] += part
            else:
                batches.append(part)
    return batches


class _NeighbourIndex:
    """An inverted index over the words of one scope's memories."""

    def __init__(self, memories: Sequence[Memory], vectors: Mapping[str, Vector]) -> None:
        self._words = {memory.id: similarity.words_of(memory.content) for memory in memories}
        self._vectors = vectors
        self._frequency = Counter(word for words in self._words.values() for word in words)
        self._ids_by_word: dict[str, list[str]] = {}
        for id_ in self._words:
            for word in self._index_words(id_):
                self._ids_by_word.setdefault(word, []).append(id_)

    def groups(self, changed_ids: Iterable[str]) -> list[list[str]]:
        """Return each changed memory with its near-duplicates; groups that share a memory are joined."""
        group_of: dict[str, list[str]] = {}
        for id_ in changed_ids:
            groups = {id(group_of.get(near, near)): group_of.get(near, [near]) for near in self._near(id_)}
            joined = list(dict.fromkeys(member for group in groups.values() for member in group))
            group_of.update(dict.fromkeys(joined, joined))
        return list({id(group): group for group in group_of.values()}.values())

    def candidates(self, changed_ids: Iterable[str]) -> list[str]:
        """Return the memories that share an index word with any of these."""
        return [other for id_ in changed_ids for other in self._candidates(id_)]

    def _near(self, id_: str) -> list[str]:
        return [id_, *(other for other in self._candidates(id_) if self._are_near(id_, other))]

    def _candidates(self, id_: str) -> list[str]:
        """Return the memories that share the most index words with this one, at most 200."""
        shared = Counter(
            other for word in self._index_words(id_) for other in self._ids_with(word) if other != id_
        )
        return [other for other, _ in shared.most_common(_MAX_CANDIDATES)]

    def _ids_with(self, word: str) -> list[str]:
        return self._ids_by_word.get(word, [])[: 10 * _MAX_CANDIDATES]

    def _index_words(self, id_: str) -> Iterator[str]:
        """Yield the words under which a memory is indexed: the prefix of its rarest, and all rare ones."""
        by_rarity = sorted(self._words[id_], key=lambda word: (self._frequency[word], word))
        prefix = len(by_rarity) - ceil(similarity.MIN_SHARED_WORDS * len(by_rarity)) + 1
        for position, word in enumerate(by_rarity):
            if position < prefix or 1 < self._frequency[word] <= _MAX_RARE_COUNT:
                yield word

    def _are_near(self, first_id: str, second_id: str) -> bool:
        if similarity.words_are_similar(self._words[first_id], self._words[second_id]):
            return True
        first, second = self._vectors.get(first_id), self._vectors.get(second_id)
        return first is not None and second is not None and similarity.vectors_are_similar(first, second)
