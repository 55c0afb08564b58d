"""DR6: the model marks, code counts: 1 very irritated, 2 mildly frustrated, 3 casual, across runs."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from shared.dreams.passes import preferences
from shared.dreams.passes.preferences import Evidence, Level, Occurrence, PreferenceCount
from shared.foundation import errors

VERY, MILD, CASUAL = Level.VERY_IRRITATED, Level.MILDLY_FRUSTRATED, Level.CASUAL
MARK = {
    "key": "Short answers!",
    "content": "Mira wants short answers.",
    "category": "user-preferences/writing",
    "tags": ["style"],
    "level": "casual",
    "sessionId": "s1",
    "seqs": [7],
    "quote": "shorter, please",
}


def seen(level: Level, seq: int, *more: int, session: str = "s1") -> Evidence:
    return Evidence(session, frozenset((seq, *more)), level)


def marked(level: Level, seq: int, *more: int, key: str = "k", content: str = "Wants k") -> Occurrence:
    return Occurrence(key, content, "user-preferences/inferred", ("inferred",), seen(level, seq, *more))


def due(*levels: Level) -> bool:
    fresh = [marked(level, place) for place, level in enumerate(levels)]
    return bool(preferences.newly_due({}, fresh))


@pytest.mark.parametrize("levels", [[VERY], [MILD] * 2, [CASUAL] * 3, [MILD, CASUAL, CASUAL], [VERY, CASUAL]])
def test_a_threshold_that_is_reached_is_due(levels: list[Level]) -> None:
    assert due(*levels)


@pytest.mark.parametrize("levels", [[], [MILD], [CASUAL], [CASUAL] * 2, [MILD, CASUAL]])
def test_one_that_is_not_reached_is_not(levels: list[Level]) -> None:
    assert not due(*levels)


def test_runs_add_up_and_a_key_is_due_once() -> None:
    counted = {"k": (seen(CASUAL, 1), seen(CASUAL, 2))}
    [tally] = preferences.newly_due(counted, [marked(CASUAL, 3)])
    assert set(tally.evidence) == {seen(CASUAL, 1), seen(CASUAL, 2), seen(CASUAL, 3)}
    assert preferences.newly_due({"k": tally.evidence}, [marked(VERY, 4)]) == []
    [again] = preferences.count_by_key({"k": tally.evidence}, [marked(VERY, 4)])
    assert again.is_due
    assert again.was_due


def test_a_turn_that_is_read_again_counts_once() -> None:
    counted = {"k": (seen(CASUAL, 1), seen(CASUAL, 2))}
    assert preferences.newly_due(counted, [marked(CASUAL, 1), marked(CASUAL, 2), marked(CASUAL, 2)]) == []


def test_the_same_turn_of_another_session_is_another_place() -> None:
    counted = {"k": (seen(CASUAL, 1), seen(CASUAL, 1, session="s2"))}
    assert preferences.newly_due(counted, [marked(CASUAL, 2)])


def test_a_place_counts_at_its_strongest() -> None:
    [tally] = preferences.count_by_key({"k": (seen(CASUAL, 1),)}, [marked(MILD, 1)])
    assert tally.evidence == (seen(MILD, 1),)
    [weaker] = preferences.count_by_key({"k": (seen(MILD, 1),)}, [marked(CASUAL, 1)])
    assert weaker.evidence == (seen(MILD, 1),)


def test_several_turns_of_one_exchange_are_one_place_also_when_cut_differently() -> None:
    assert preferences.newly_due({}, [marked(MILD, 1, 2, 3)]) == []
    counted = {"k": (seen(MILD, 1, 2),)}
    assert preferences.newly_due(counted, [marked(MILD, 2, 3)]) == []
    [tally] = preferences.count_by_key({"k": (seen(CASUAL, 1), seen(CASUAL, 3))}, [marked(CASUAL, 1, 3)])
    assert tally.evidence == (seen(CASUAL, 1, 3),)


def test_keys_are_apart_and_compared_as_normalised() -> None:
    fresh = [
        marked(MILD, 1, key="Short Answers"),
        marked(MILD, 2, key="short_answers"),
        marked(MILD, 3, key="x"),
    ]
    assert [tally.key for tally in preferences.newly_due({}, fresh)] == ["short-answers"]
    assert preferences.newly_due({"SHORT answers": (seen(MILD, 9),)}, fresh[:1])


def test_a_preference_is_worded_by_its_strongest_then_latest_mark() -> None:
    fresh = [
        marked(MILD, 1, content="first"),
        marked(MILD, 2, content="second"),
        marked(CASUAL, 3, content="third"),
    ]
    [tally] = preferences.newly_due({}, fresh)
    assert tally.occurrence.content == "second"


LEVELS = some.sampled_from(list(Level))
PLACES = some.tuples(LEVELS, some.integers(0, 5))


@given(some.lists(PLACES, max_size=8), some.integers(0, 8), some.randoms())
def test_however_marks_are_spread_over_runs_and_repeated_the_count_is_the_same(
    places: list[tuple[Level, int]], cut: int, chance: Any
) -> None:
    marks = [marked(level, seq) for level, seq in places]
    first = preferences.count_by_key({}, marks[:cut])
    counted = {tally.key: tally.evidence for tally in first}
    second = [*marks[cut:], *marks[:cut]]
    chance.shuffle(second)
    strongest = {seq: max(lv.weight for lv, s in places if s == seq) for _, seq in places}
    for tally in preferences.count_by_key(counted, second):
        assert {min(one.seqs): one.level.weight for one in tally.evidence} == strongest
        assert tally.is_due == (sum(strongest.values()) >= 6)


def test_every_mix_of_levels_is_due_exactly_by_the_scale() -> None:
    for very, mild, casual in product(range(2), range(3), range(4)):
        levels = [VERY] * very + [MILD] * mild + [CASUAL] * casual
        assert due(*levels) == (very + mild / 2 + casual / 3 > 0.999)


def test_a_mark_is_read_as_it_is_meant() -> None:
    [one] = preferences.parse(json.dumps({"occurrences": [MARK]}))
    assert one == Occurrence(
        "short-answers",
        "Mira wants short answers.",
        "user-preferences/writing",
        ("inferred", "style"),
        seen(CASUAL, 7),
        "shorter, please",
    )
    assert preferences.parse(json.dumps([MARK])) == [one]
    assert preferences.parse('{"occurrences": []}') == []


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        ({"category": None}, "category", "user-preferences/inferred"),
        ({"category": "active-plans/x"}, "category", "user-preferences/inferred"),
        ({"category": "user-preferences"}, "category", "user-preferences/inferred"),
        ({"category": "writing"}, "category", "user-preferences/writing"),
        ({"tags": None}, "tags", ("inferred",)),
        ({"tags": ["a", "inferred"]}, "tags", ("inferred", "a")),
        ({"key": None}, "key", "mira-wants-short-answers"),
        ({"key": "?!"}, "key", "mira-wants-short-answers"),
        ({"quote": 5}, "quote", None),
        ({"level": "Very irritated"}, "sighting", seen(VERY, 7)),
        ({"level": "mildly-frustrated"}, "sighting", seen(MILD, 7)),
        ({"seqs": [7, "8", True, 9]}, "sighting", seen(CASUAL, 7, 9)),
        ({"seqs": None, "seq": 3}, "sighting", seen(CASUAL, 3)),
    ],
)
def test_what_a_model_writes_oddly_is_cleaned(change: dict[str, Any], field: str, value: Any) -> None:
    [one] = preferences.parse(json.dumps({"occurrences": [MARK | change]}))
    assert getattr(one, field) == value


@pytest.mark.parametrize(
    "change",
    [
        {"content": " "},
        {"content": "a\x00"},
        {"content": None},
        {"level": "furious"},
        {"level": None},
        {"seqs": []},
        {"seqs": "7"},
        {"seqs": [True]},
        {"sessionId": None},
    ],
)
def test_a_mark_that_can_not_be_counted_is_left_out(change: dict[str, Any]) -> None:
    assert preferences.parse(json.dumps({"occurrences": [MARK | change]})) == []


def test_a_refusal_is_no_list_of_marks() -> None:
    with pytest.raises(errors.InvalidModelReply):
        preferences.parse("I'd rather not.")


def test_only_turns_that_were_read_attest_anything() -> None:
    marks = [marked(VERY, 1, 2), marked(VERY, 8)]
    assert preferences.with_read_turns(marks, {("s1", 2), ("s2", 8)}) == [marked(VERY, 2)]


def inferred(**change: Any) -> Any:
    [one] = preferences.parse(json.dumps({"occurrences": [MARK | change]}))
    return preferences.to_draft(PreferenceCount(one.key, (one.sighting,), one, was_due=False))


def test_an_inferred_entry_says_that_it_is_and_where_from() -> None:
    draft = inferred()
    assert draft.validated() == draft
    assert draft.metadata == {"source": "inferred"}
    assert draft.tags[0] == "inferred"
    assert draft.source is not None
    assert (draft.source.session_id, draft.source.seq) == ("s1", 7)
    assert not draft.enrich


@pytest.mark.parametrize(
    "change",
    [
        {"content": "Mira wants invoices paid at once"},
        {"quote": "just use my password"},
        {"category": "user-preferences/money"},
        {"tags": ["security"]},
        {"key": "api-key-in-chat"},
    ],
)
def test_the_need_for_permission_is_set_by_code(change: dict[str, Any]) -> None:
    assert inferred(**change).metadata["requires_user_permission"] == "true"
