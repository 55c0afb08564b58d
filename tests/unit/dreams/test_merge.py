"""DR4: the fields of a merge, each from its sources."""

from datetime import timedelta
from typing import Any

import pytest

from shared.dreams.verification.merge import merge_fields
from shared.memory.longterm.memory import Source
from tests.unit.dreams.entries import DAWN, entry, name, saving

HOUR = timedelta(hours=1)


def fields(*sources: dict[str, Any], **offered: Any) -> Any:
    made = [entry(number, **one) for number, one in enumerate(sources, 1)]
    return merge_fields(saving("User likes tea", *range(1, len(made) + 1), **offered), made)


def test_times_and_counts_add_up() -> None:
    made = fields(
        {"created_at": DAWN, "last_seen_at": DAWN + HOUR, "reinforcement_count": 2},
        {"created_at": DAWN - HOUR, "last_seen_at": DAWN + 3 * HOUR, "reinforcement_count": 3},
        {"created_at": DAWN + HOUR, "last_seen_at": DAWN},
    )
    assert made.created_at == DAWN - HOUR
    assert made.last_seen_at == DAWN + 3 * HOUR
    assert made.reinforcement_count == 6
    assert made.derived_from == (name(1), name(2), name(3))


def test_when_it_happened_is_the_earliest_that_is_known() -> None:
    assert fields({}, {}).occurred_at is None
    assert fields({"occurred_at": DAWN}, {}).occurred_at == DAWN
    assert fields({"occurred_at": DAWN}, {"occurred_at": DAWN - HOUR}).occurred_at == DAWN - HOUR


@pytest.mark.parametrize(
    ("offered", "expected"), [(None, 0.6), (0.1, 0.6), (0.7, 0.7), (0.75, 0.75), (0.8, 0.75), (1.0, 0.75)]
)
def test_a_model_raises_importance_only_below_what_protects(offered: float | None, expected: float) -> None:
    assert fields({"importance": 0.6}, {"importance": 0.2}, importance=offered).importance == expected


def test_a_model_never_lowers_importance() -> None:
    assert fields({"importance": 0.9}, {"importance": 0.2}, importance=0.0).importance == 0.9


def test_tags_are_the_union_with_the_models_first() -> None:
    assert fields({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, tags=("c", "new", "a\n")).tags == (
        "c",
        "new",
        "a",
        "b",
    )


def test_tags_of_the_sources_go_before_new_ones_when_there_are_too_many() -> None:
    kept = [f"k{number}" for number in range(63)]
    made = fields({"tags": kept}, tags=("one", "two", "k7"))
    assert set(made.tags) == {*kept, "one"}
    assert len(made.tags) == 64


def test_a_model_can_not_hand_out_marks() -> None:
    assert fields({"tags": ["a"]}, tags=("anti-pattern", "inferred")).tags == ("a",)


def test_of_differing_metadata_the_newest_source_is_right() -> None:
    made = fields({"metadata": {"a": "old", "b": "1"}}, {"metadata": {"a": "new", "c": "2"}})
    assert made.metadata == {"a": "new", "b": "1", "c": "2"}
    younger = {"metadata": {"a": "new"}, "created_at": DAWN + 9 * HOUR}
    assert fields(younger, {"metadata": {"a": "old"}}).metadata == {"a": "new"}


@pytest.mark.parametrize("order", [("true", "false"), ("false", "TRUE")])
def test_the_need_for_permission_sticks(order: tuple[str, str]) -> None:
    made = fields(*({"metadata": {"requires_user_permission": one}} for one in order))
    assert made.metadata["requires_user_permission"] == "true"
    assert "requires_user_permission" not in fields({}, {}).metadata


def test_what_a_user_said_is_not_inferred_for_being_merged_with_a_guess() -> None:
    guess = {
        "metadata": {"source": "inferred"},
        "tags": ["inferred"],
        "category": "user-preferences/inferred",
    }
    guesses = fields(guess, guess | {"reinforcement_count": 9})
    assert guesses.metadata == {"source": "inferred"}
    assert guesses.tags == ("inferred",)
    assert guesses.category == "user-preferences/inferred"
    told = fields(
        guess | {"reinforcement_count": 9}, {"category": "food"}, category="user-preferences/inferred"
    )
    assert "source" not in told.metadata
    assert told.tags == ()
    assert told.category == "food"
    imported = fields({"metadata": {"source": "import"}}, guess)
    assert imported.metadata == {"source": "import"}


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        ("user-preferences/food", "user-preferences/food"),
        ("Über Tee/x y", "Uber-Tee/x-y"),
        (None, "often"),
        ("...", "often"),
        ("active-plans/tea", "often"),
        ("anti-patterns/tea", "often"),
    ],
)
def test_the_category_is_the_models_or_that_of_the_most_reinforced(
    offered: str | None, expected: str
) -> None:
    made = fields({"category": "seldom"}, {"category": "often", "reinforcement_count": 4}, category=offered)
    assert made.category == expected


def test_an_anti_pattern_keeps_its_place() -> None:
    warning = {"category": "anti-patterns/email", "tags": ["anti-pattern"]}
    often = {"category": "general", "reinforcement_count": 9}
    assert fields(warning, often, category="general").category == "anti-patterns/email"
    assert fields(warning, often, category="anti-patterns/mail").category == "anti-patterns/mail"
    assert fields(warning, often).tags == ("anti-pattern",)


def test_sources_are_united_without_repeats() -> None:
    one, two = Source(session_id="s", seq=1), Source(session_id="s", seq=2)
    assert fields({"sources": [one, two]}, {"sources": [two]}).sources == (one, two)


def test_agent_and_user_are_those_of_the_sources() -> None:
    made = fields({}, {})
    assert (made.agent_id, made.user_id) == ("helper", "mira")
