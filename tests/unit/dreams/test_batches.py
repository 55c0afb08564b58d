"""DR2: small scopes are shown whole; of larger ones what changed, with its near-duplicates."""

import time
from itertools import chain

import pytest

from shared.dreams.runs.batches import build_batches
from shared.dreams.verification import similarity
from shared.memory.longterm.memory import Memory
from tests.unit.dreams.builders import memory, memory_id


def numbered(count: int, start: int = 0, **fields: str | None) -> list[Memory]:
    return [
        memory(number, f"The crate {number} holds lamp{number * 7} for shop{number % 40}", **fields)
        for number in range(start, start + count)
    ]


def test_a_scope_up_to_the_limit_is_shown_whole() -> None:
    assert build_batches(numbered(5), {memory_id(2)}, limit=5) == [[memory_id(number) for number in range(5)]]


def test_a_scope_in_which_nothing_changed_is_not_shown() -> None:
    assert build_batches(numbered(5), set(), limit=5) == []
    assert build_batches(numbered(6), {memory_id(99)}, limit=5) == []
    assert build_batches([], {memory_id(1)}) == []


def test_of_a_larger_scope_only_changed_memories_are_shown_with_their_near_duplicates() -> None:
    memories = [
        *numbered(30),
        memory(100, "The crate 3 holds lamp21 for the shop3"),
        memory(101, "Bo sings in a choir"),
    ]
    [batch] = build_batches(memories, {memory_id(100), memory_id(101)}, limit=20)
    assert set(batch) == {memory_id(3), memory_id(100), memory_id(101)}
    assert abs(batch.index(memory_id(3)) - batch.index(memory_id(100))) == 1


def test_memories_with_similar_vectors_and_a_shared_rare_word_are_shown_together() -> None:
    memories = [
        *numbered(30),
        memory(100, "Kessler is slow to deliver"),
        memory(101, "Long waits at Kessler's"),
    ]
    vectors = {memory_id(100): [1.0, 0.0], memory_id(101): [0.9, 0.4], memory_id(1): [1.0, 0.0]}
    assert set(*build_batches(memories, {memory_id(100)}, vectors, limit=20)) == {
        memory_id(100),
        memory_id(101),
    }
    dissimilar = vectors | {memory_id(101): [0.5, 0.9]}
    assert build_batches(memories, {memory_id(100)}, dissimilar, limit=20) == [[memory_id(100)]]
    assert build_batches(memories, {memory_id(100)}, None, limit=20) == [[memory_id(100)]]


def test_groups_that_share_a_memory_are_joined_and_no_memory_is_shown_twice() -> None:
    texts = ["a1 b1 c1 d1 e1", "a1 b1 c1 d1 f1", "a1 b1 c1 g1 f1", "x9 y9"]
    memories = [*numbered(20), *(memory(100 + position, text) for position, text in enumerate(texts))]
    batches = build_batches(memories, {memory_id(100), memory_id(102), memory_id(103)}, limit=10)
    assert sorted(chain(*batches)) == [memory_id(100), memory_id(101), memory_id(102), memory_id(103)]


def test_groups_are_packed_into_few_batches_none_over_the_limit() -> None:
    memories = numbered(50)
    changed = {memory_id(number) for number in range(25)}
    batches = build_batches(memories, changed, limit=10)
    assert [len(batch) for batch in batches] == [10, 10, 5]
    copies = [memory(number, "The same text for all of them") for number in range(25)]
    batches = build_batches(copies, {copy.id for copy in copies}, limit=10)
    assert max(map(len, batches)) <= 10
    assert sorted(chain(*batches)) == [copy.id for copy in copies]


@pytest.mark.parametrize("limit", [3, 100])
def test_memories_of_different_users_are_never_in_one_batch(limit: int) -> None:
    memories = [
        memory(number, "User likes tea", user_id=user) for number, user in enumerate(["bo", None, "mira"] * 4)
    ]
    batches = build_batches(memories, {item.id for item in memories}, limit=limit)
    user_by_id = {item.id: item.user_id for item in memories}
    assert all(len({user_by_id[id_] for id_ in batch}) == 1 for batch in batches)
    assert sorted(chain(*batches)) == sorted(user_by_id)


def test_all_near_duplicates_by_words_are_found() -> None:
    """The index must find the same pairs as the comparison of every memory with every other."""
    texts = [
        f"w{a} w{b} w{c} w{d} w9" for a in range(4) for b in range(4) for c in range(3) for d in range(3)
    ]
    memories = [memory(number, text) for number, text in enumerate(texts)]
    for changed in memories[::29]:
        similar_ids = {
            other.id
            for other in memories
            if similarity.words_are_similar(
                similarity.words_of(changed.content), similarity.words_of(other.content)
            )
        }
        assert set(chain(*build_batches(memories, {changed.id}, limit=100))) == similar_ids | {changed.id}


def test_the_cost_depends_on_what_changed() -> None:
    """Comparing every pair of these ten thousand memories would take minutes."""
    memories = [*numbered(8000), *(memory(number, "The same text for all") for number in range(8000, 10_000))]
    began = time.process_time()
    batches = build_batches(memories, {item.id for item in memories[::100]})
    assert sum(map(len, batches)) < 10_000
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("first", "second", "is_similar"),
    [
        ("a1 a2 a3", "a1 a2 a3", True),
        ("a1 a2 a3 a4", "a1 a2 a3 a5", True),
        ("a1 a2 a3", "a1 a2 b3", False),
        ("", "", False),
    ],
)
def test_similarity_of_words_has_a_threshold(first: str, second: str, *, is_similar: bool) -> None:
    assert similarity.words_are_similar(frozenset(first.split()), frozenset(second.split())) is is_similar


def test_similarity_of_vectors_has_a_threshold() -> None:
    assert similarity.vectors_are_similar([1.0, 0.0], [2.0, 0.0])
    assert similarity.vectors_are_similar([1.0, 0.0], [0.881, 0.4731])
    assert not similarity.vectors_are_similar([1.0, 0.0], [0.879, 0.4768])
    assert not similarity.vectors_are_similar([0.0, 0.0], [0.0, 0.0])
    assert not similarity.vectors_are_similar([1.0], [1.0, 0.0])
