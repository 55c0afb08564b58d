"""DR7: which merges would repeat one that was undone."""

import pytest

from shared.dreams.runs.undone_change_queries import UndoneChanges


@pytest.mark.parametrize(
    ("ids", "is_forbidden"),
    [
        ({"a", "b", "c"}, True),
        ({"a", "b"}, True),
        ({"b", "c", "x"}, True),
        ({"a", "x"}, False),
        ({"x", "y"}, False),
        ({"a"}, False),
        (["a", "a"], False),
    ],
)
def test_a_merge_is_forbidden_if_it_joins_two_of_an_undone_one(ids: set[str], *, is_forbidden: bool) -> None:
    assert UndoneChanges({"g": {"a", "b", "c"}}).forbids_merge(ids) == is_forbidden


@pytest.mark.parametrize(("ids", "is_forbidden"), [({"a"}, True), ({"a", "b"}, False), ({"b"}, False)])
def test_an_undone_rewording_of_one_memory_forbids_only_that(ids: set[str], *, is_forbidden: bool) -> None:
    assert UndoneChanges({"g": {"a"}}).forbids_merge(ids) == is_forbidden


def test_each_group_counts_for_itself() -> None:
    undone = UndoneChanges({"g": {"a", "b"}, "h": {"c", "d"}})
    assert not undone.forbids_merge({"a", "c"})
    assert undone.forbids_merge({"a", "c", "d"})
