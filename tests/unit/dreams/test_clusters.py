"""DR2: small scopes whole; of larger ones what changed, with its near-duplicates."""

import time
from itertools import chain

import pytest

from shared.dreams.runs.batches import build_batches
from shared.dreams.verification import similarity
from shared.memory.longterm.memory import Memory
from tests.unit.dreams.entries import entry, name


def numbered(count: int, start: int = 0, **fields: str | None) -> list[Memory]:
    return [
        entry(number, f"The crate {number} holds lamp{number * 7} for shop{number % 40}", **fields)
        for number in range(start, start + count)
    ]


def test_a_scope_up_to_the_limit_is_shown_whole() -> None:
    assert build_batches(numbered(5), {name(2)}, limit=5) == [[name(number) for number in range(5)]]


def test_a_scope_in_which_nothing_changed_is_not_shown() -> None:
    assert build_batches(numbered(5), set(), limit=5) == []
    assert build_batches(numbered(6), {name(99)}, limit=5) == []
    assert build_batches([], {name(1)}) == []


def test_of_a_larger_scope_only_what_changed_is_shown_with_its_near_duplicates() -> None:
    entries = [
        *numbered(30),
        entry(100, "The crate 3 holds lamp21 for the shop3"),
        entry(101, "Bo sings in a choir"),
    ]
    [shown] = build_batches(entries, {name(100), name(101)}, limit=20)
    assert set(shown) == {name(3), name(100), name(101)}
    assert abs(shown.index(name(3)) - shown.index(name(100))) == 1


def test_what_vectors_show_alike_and_a_rare_word_joins_is_shown_together() -> None:
    entries = [*numbered(30), entry(100, "Kessler is slow to deliver"), entry(101, "Long waits at Kessler's")]
    vectors = {name(100): [1.0, 0.0], name(101): [0.9, 0.4], name(1): [1.0, 0.0]}
    assert set(*build_batches(entries, {name(100)}, vectors, limit=20)) == {name(100), name(101)}
    far = vectors | {name(101): [0.5, 0.9]}
    assert build_batches(entries, {name(100)}, far, limit=20) == [[name(100)]]
    assert build_batches(entries, {name(100)}, None, limit=20) == [[name(100)]]


def test_groups_that_share_an_entry_are_one_and_no_entry_is_shown_twice() -> None:
    texts = ["a1 b1 c1 d1 e1", "a1 b1 c1 d1 f1", "a1 b1 c1 g1 f1", "x9 y9"]
    entries = [*numbered(20), *(entry(100 + place, text) for place, text in enumerate(texts))]
    shown = build_batches(entries, {name(100), name(102), name(103)}, limit=10)
    assert sorted(chain(*shown)) == [name(100), name(101), name(102), name(103)]


def test_groups_are_packed_into_few_lists_none_over_the_limit() -> None:
    entries = numbered(50)
    changed = {name(number) for number in range(25)}
    shown = build_batches(entries, changed, limit=10)
    assert [len(one) for one in shown] == [10, 10, 5]
    copies = [entry(number, "The same text for all of them") for number in range(25)]
    shown = build_batches(copies, {one.id for one in copies}, limit=10)
    assert max(map(len, shown)) <= 10
    assert sorted(chain(*shown)) == [one.id for one in copies]


@pytest.mark.parametrize("limit", [3, 100])
def test_nobodys_entries_are_shown_with_anothers(limit: int) -> None:
    texts = [
        entry(number, "User likes tea", user_id=user) for number, user in enumerate(["bo", None, "mira"] * 4)
    ]
    shown = build_batches(texts, {one.id for one in texts}, limit=limit)
    owner = {one.id: one.user_id for one in texts}
    assert all(len({owner[id_] for id_ in one}) == 1 for one in shown)
    assert sorted(chain(*shown)) == sorted(owner)


def test_near_duplicates_by_words_are_all_found() -> None:
    """Against the plain comparison of each with each, which the index only saves."""
    texts = [
        f"w{a} w{b} w{c} w{d} w9" for a in range(4) for b in range(4) for c in range(3) for d in range(3)
    ]
    entries = [entry(number, text) for number, text in enumerate(texts)]
    for fresh in entries[::29]:
        alike = {
            other.id
            for other in entries
            if similarity.words_are_similar(
                similarity.words_of(fresh.content), similarity.words_of(other.content)
            )
        }
        assert set(chain(*build_batches(entries, {fresh.id}, limit=100))) == alike | {fresh.id}


def test_the_cost_grows_with_what_changed() -> None:
    """Ten thousand entries, of which some are copies: comparing each with each would take minutes."""
    entries = [*numbered(8000), *(entry(number, "The same text for all") for number in range(8000, 10_000))]
    began = time.process_time()
    shown = build_batches(entries, {one.id for one in entries[::100]})
    assert sum(map(len, shown)) < 10_000
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("a1 a2 a3", "a1 a2 a3", True),
        ("a1 a2 a3 a4", "a1 a2 a3 a5", True),
        ("a1 a2 a3", "a1 a2 b3", False),
        ("", "", False),
    ],
)
def test_likeness_of_words_is_bounded(one: str, other: str, *, alike: bool) -> None:
    assert similarity.words_are_similar(frozenset(one.split()), frozenset(other.split())) is alike


def test_likeness_of_vectors_is_bounded() -> None:
    assert similarity.vectors_are_similar([1.0, 0.0], [2.0, 0.0])
    assert similarity.vectors_are_similar([1.0, 0.0], [0.881, 0.4731])
    assert not similarity.vectors_are_similar([1.0, 0.0], [0.879, 0.4768])
    assert not similarity.vectors_are_similar([0.0, 0.0], [0.0, 0.0])
    assert not similarity.vectors_are_similar([1.0], [1.0, 0.0])
