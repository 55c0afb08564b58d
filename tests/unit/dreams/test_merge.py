"""DR4: the fields of a merge, each from its sources."""

from datetime import timedelta
from typing import Any

import pytest

from shared.dreams.verification.merge import gives_unearned_label, merge_fields
from shared.foundation import validation
from shared.foundation.origin import Origin, Trust
from shared.memory.longterm.memory import MAX_REINFORCEMENT_COUNT, Source
from tests.unit.dreams.builders import START, memory, memory_id, replacement

HOUR = timedelta(hours=1)


def fields(*sources: dict[str, Any], **offered: Any) -> Any:
    memories = [memory(number, **source) for number, source in enumerate(sources, 1)]
    return merge_fields(replacement("User likes tea", *range(1, len(memories) + 1), **offered), memories)


def test_times_and_counts_add_up() -> None:
    merged = fields(
        {"created_at": START, "last_seen_at": START + HOUR, "reinforcement_count": 2},
        {"created_at": START - HOUR, "last_seen_at": START + 3 * HOUR, "reinforcement_count": 3},
        {"created_at": START + HOUR, "last_seen_at": START},
    )
    assert merged.created_at == START - HOUR
    assert merged.last_seen_at == START + 3 * HOUR
    assert merged.reinforcement_count == 6
    assert merged.derived_from == (memory_id(1), memory_id(2), memory_id(3))


def test_a_count_for_which_there_is_no_room_is_the_greatest() -> None:
    greatest = {"reinforcement_count": MAX_REINFORCEMENT_COUNT}
    assert fields(greatest, {}).reinforcement_count == MAX_REINFORCEMENT_COUNT


def test_occurred_at_is_the_earliest_of_the_sources() -> None:
    assert fields({}, {}).occurred_at is None
    assert fields({"occurred_at": START}, {}).occurred_at == START
    assert fields({"occurred_at": START}, {"occurred_at": START - HOUR}).occurred_at == START - HOUR


@pytest.mark.parametrize(
    ("offered", "expected"), [(None, 0.6), (0.1, 0.6), (0.7, 0.7), (0.71, 0.7), (0.8, 0.7), (1.0, 0.7)]
)
def test_a_model_cannot_raise_importance_to_the_protected_range(
    offered: float | None, expected: float
) -> None:
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


def test_tags_of_the_sources_have_precedence_if_there_are_too_many() -> None:
    source_tags = [f"k{number}" for number in range(63)]
    merged = fields({"tags": source_tags}, tags=("one", "two", "k7"))
    assert set(merged.tags) == {*source_tags, "one"}
    assert len(merged.tags) == 64


def test_a_model_cannot_set_the_tags_anti_pattern_and_inferred() -> None:
    assert fields({"tags": ["a"]}, tags=("anti-pattern", "inferred")).tags == ("a",)


def test_if_metadata_differ_the_value_of_the_newest_source_is_kept() -> None:
    merged = fields({"metadata": {"a": "old", "b": "1"}}, {"metadata": {"a": "new", "c": "2"}})
    assert merged.metadata == {"a": "new", "b": "1", "c": "2"}
    newer = {"metadata": {"a": "new"}, "created_at": START + 9 * HOUR}
    assert fields(newer, {"metadata": {"a": "old"}}).metadata == {"a": "new"}


@pytest.mark.parametrize("order", [("true", "false"), ("false", "TRUE")])
def test_the_need_for_permission_is_kept(order: tuple[str, str]) -> None:
    merged = fields(*({"metadata": {"requires_user_permission": value}} for value in order))
    assert merged.metadata["requires_user_permission"] == "true"
    assert "requires_user_permission" not in fields({}, {}).metadata


def test_a_stated_fact_does_not_become_inferred_when_merged_with_an_inferred_one() -> None:
    guess = {
        "metadata": {"source": "inferred"},
        "tags": ["inferred"],
        "category": "user-preferences/inferred",
    }
    guesses = fields(guess, guess | {"reinforcement_count": 9})
    assert guesses.metadata == {"source": "inferred"}
    assert guesses.tags == ("inferred",)
    assert guesses.category == "user-preferences/inferred"
    stated = fields(
        guess | {"reinforcement_count": 9}, {"category": "food"}, category="user-preferences/inferred"
    )
    assert "source" not in stated.metadata
    assert stated.tags == ()
    assert stated.category == "food"
    imported = fields({"metadata": {"source": "import"}}, guess)
    assert imported.metadata == {"source": "import"}


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        ("food/tea", "food/tea"),
        ("User-Preferences/food", "often"),
        ("Über Tee/x y", "Uber-Tee/x-y"),
        (None, "often"),
        ("...", "often"),
        ("active-plans/tea", "often"),
        ("anti-patterns/tea", "often"),
    ],
)
def test_the_category_is_the_models_or_that_of_the_most_reinforced_source(
    offered: str | None, expected: str
) -> None:
    merged = fields({"category": "seldom"}, {"category": "often", "reinforcement_count": 4}, category=offered)
    assert merged.category == expected


def test_a_merge_with_a_preference_may_be_a_preference() -> None:
    sources = ({"category": "user-preferences/drinks"}, {"category": "often", "reinforcement_count": 4})
    assert fields(*sources, category="user-preferences/tea").category == "user-preferences/tea"


def test_an_anti_pattern_keeps_its_category_and_tag() -> None:
    warning = {"category": "anti-patterns/email", "tags": ["anti-pattern"]}
    often = {"category": "general", "reinforcement_count": 9}
    assert fields(warning, often, category="general").category == "anti-patterns/email"
    assert fields(warning, often, category="anti-patterns/mail").category == "anti-patterns/mail"
    assert fields(warning, often).tags == ("anti-pattern",)


def test_sources_are_united_without_repeats() -> None:
    first, second = Source(session_id="s", seq=1), Source(session_id="s", seq=2)
    assert fields({"sources": [first, second]}, {"sources": [second]}).sources == (first, second)


@pytest.mark.parametrize("number_of_tags", [validation.MAX_TAGS, validation.MAX_TAGS + 6])
def test_no_tag_is_added_to_sources_with_as_many_as_allowed(number_of_tags: int) -> None:
    tags = [f"tag-{number}" for number in range(number_of_tags)]
    assert fields({"tags": tags[:30]}, {"tags": tags[30:]}, tags=("new", "newer")).tags == tuple(tags)


def test_of_sources_that_were_stated_and_inferred_the_newest_stated_ones_source_is_kept() -> None:
    inferred = {"metadata": {"source": "inferred"}}
    chat, mail = {"metadata": {"source": "chat"}}, {"metadata": {"source": "mail"}}
    assert fields(chat, mail, inferred).metadata == {"source": "mail"}
    assert fields(inferred, mail, chat).metadata == {"source": "chat"}
    older_last = fields(mail | {"created_at": START + 9 * HOUR}, chat, inferred)
    assert older_last.metadata == {"source": "mail"}
    assert fields(inferred, inferred).metadata == {"source": "inferred"}
    assert fields(inferred, {}).metadata == {}


def test_a_merge_has_the_least_trust_of_its_sources() -> None:
    trusts = [Trust.OPERATOR, Trust.USER, Trust.AGENT]
    assert fields(*({"origin": Origin(trust=trust)} for trust in trusts)).trust is Trust.USER


@pytest.mark.parametrize(
    "label",
    [
        {"importance": 0.71},
        {"category": "user-preferences/tea"},
        {"category": "anti-patterns/tea"},
        {"tags": ["anti-pattern"]},
    ],
)
def test_text_of_outside_gets_no_label_that_leads_agents(label: dict[str, Any]) -> None:
    outside = {"origin": Origin(trust=Trust.OUTSIDE)}

    def is_refused(*sources: dict[str, Any]) -> bool:
        memories = [memory(number, **source) for number, source in enumerate(sources, 1)]
        return gives_unearned_label(fields(*sources), memories)

    label = label | {"reinforcement_count": 2}
    assert is_refused(label, outside)
    assert not is_refused(label, outside | label)
    assert not is_refused(label, {"origin": Origin(trust=Trust.USER)})
    assert not is_refused(outside, outside)
