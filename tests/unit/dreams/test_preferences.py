"""DR6: the model marks and code counts: 1 very irritated, 2 mildly frustrated, 3 casual, across runs."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies

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


def evidence(level: Level, seq: int, *more: int, session: str = "s1") -> Evidence:
    return Evidence(session, frozenset((seq, *more)), level)


def occurrence(level: Level, seq: int, *more: int, key: str = "k", content: str = "Wants k") -> Occurrence:
    return Occurrence(key, content, "user-preferences/inferred", ("inferred",), evidence(level, seq, *more))


def due(*levels: Level) -> bool:
    occurrences = [occurrence(level, seq) for seq, level in enumerate(levels)]
    return bool(preferences.newly_due({}, occurrences))


@pytest.mark.parametrize("levels", [[VERY], [MILD] * 2, [CASUAL] * 3, [MILD, CASUAL, CASUAL], [VERY, CASUAL]])
def test_a_preference_at_its_threshold_is_due(levels: list[Level]) -> None:
    assert due(*levels)


@pytest.mark.parametrize("levels", [[], [MILD], [CASUAL], [CASUAL] * 2, [MILD, CASUAL]])
def test_a_preference_below_its_threshold_is_not_due(levels: list[Level]) -> None:
    assert not due(*levels)


def test_runs_add_up_and_a_key_is_due_once() -> None:
    counted = {"k": (evidence(CASUAL, 1), evidence(CASUAL, 2))}
    [count] = preferences.newly_due(counted, [occurrence(CASUAL, 3)])
    assert set(count.evidence) == {evidence(CASUAL, 1), evidence(CASUAL, 2), evidence(CASUAL, 3)}
    assert preferences.newly_due({"k": count.evidence}, [occurrence(VERY, 4)]) == []
    [recounted] = preferences.count_by_key({"k": count.evidence}, [occurrence(VERY, 4)])
    assert recounted.is_due
    assert recounted.was_due


def test_a_turn_that_is_read_again_counts_once() -> None:
    counted = {"k": (evidence(CASUAL, 1), evidence(CASUAL, 2))}
    assert (
        preferences.newly_due(counted, [occurrence(CASUAL, 1), occurrence(CASUAL, 2), occurrence(CASUAL, 2)])
        == []
    )


def test_the_same_seq_of_another_session_is_separate_evidence() -> None:
    counted = {"k": (evidence(CASUAL, 1), evidence(CASUAL, 1, session="s2"))}
    assert preferences.newly_due(counted, [occurrence(CASUAL, 2)])


def test_evidence_counts_at_its_strongest_level() -> None:
    [count] = preferences.count_by_key({"k": (evidence(CASUAL, 1),)}, [occurrence(MILD, 1)])
    assert count.evidence == (evidence(MILD, 1),)
    [weaker] = preferences.count_by_key({"k": (evidence(MILD, 1),)}, [occurrence(CASUAL, 1)])
    assert weaker.evidence == (evidence(MILD, 1),)


def test_overlapping_turns_are_one_piece_of_evidence() -> None:
    assert preferences.newly_due({}, [occurrence(MILD, 1, 2, 3)]) == []
    counted = {"k": (evidence(MILD, 1, 2),)}
    assert preferences.newly_due(counted, [occurrence(MILD, 2, 3)]) == []
    [count] = preferences.count_by_key(
        {"k": (evidence(CASUAL, 1), evidence(CASUAL, 3))}, [occurrence(CASUAL, 1, 3)]
    )
    assert count.evidence == (evidence(CASUAL, 1, 3),)


def test_keys_are_separate_and_compared_after_normalisation() -> None:
    occurrences = [
        occurrence(MILD, 1, key="Short Answers"),
        occurrence(MILD, 2, key="short_answers"),
        occurrence(MILD, 3, key="x"),
    ]
    assert [count.key for count in preferences.newly_due({}, occurrences)] == ["short-answers"]
    assert preferences.newly_due({"SHORT answers": (evidence(MILD, 9),)}, occurrences[:1])


def test_a_preference_is_worded_by_its_strongest_then_latest_mark() -> None:
    occurrences = [
        occurrence(MILD, 1, content="first"),
        occurrence(MILD, 2, content="second"),
        occurrence(CASUAL, 3, content="third"),
    ]
    [count] = preferences.newly_due({}, occurrences)
    assert count.occurrence.content == "second"


LEVELS = strategies.sampled_from(list(Level))
PLACES = strategies.tuples(LEVELS, strategies.integers(0, 5))


@given(strategies.lists(PLACES, max_size=8), strategies.integers(0, 8), strategies.randoms())
def test_however_marks_are_spread_over_runs_and_repeated_the_count_is_the_same(
    places: list[tuple[Level, int]], split: int, random: Any
) -> None:
    marks = [occurrence(level, seq) for level, seq in places]
    first = preferences.count_by_key({}, marks[:split])
    counted = {count.key: count.evidence for count in first}
    second = [*marks[split:], *marks[:split]]
    random.shuffle(second)
    strongest = {
        seq: max(level.weight for level, other_seq in places if other_seq == seq) for _, seq in places
    }
    for count in preferences.count_by_key(counted, second):
        assert {min(piece.seqs): piece.level.weight for piece in count.evidence} == strongest
        assert count.is_due == (sum(strongest.values()) >= 6)


def test_every_mix_of_levels_is_due_exactly_by_the_scale() -> None:
    for very, mild, casual in product(range(2), range(3), range(4)):
        levels = [VERY] * very + [MILD] * mild + [CASUAL] * casual
        assert due(*levels) == (very + mild / 2 + casual / 3 > 0.999)


def test_a_mark_is_parsed() -> None:
    [parsed] = preferences.parse(json.dumps({"occurrences": [MARK]}))
    assert parsed == Occurrence(
        "short-answers",
        "Mira wants short answers.",
        "user-preferences/writing",
        ("inferred", "style"),
        evidence(CASUAL, 7),
        "shorter, please",
    )
    assert preferences.parse(json.dumps([MARK])) == [parsed]
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
        ({"level": "Very irritated"}, "evidence", evidence(VERY, 7)),
        ({"level": "mildly-frustrated"}, "evidence", evidence(MILD, 7)),
        ({"seqs": [7, "8", True, 9]}, "evidence", evidence(CASUAL, 7, 9)),
        ({"seqs": None, "seq": 3}, "evidence", evidence(CASUAL, 3)),
    ],
)
def test_unusual_values_of_a_model_are_cleaned(change: dict[str, Any], field: str, value: Any) -> None:
    [parsed] = preferences.parse(json.dumps({"occurrences": [MARK | change]}))
    assert getattr(parsed, field) == value


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
def test_a_mark_that_cannot_be_counted_is_left_out(change: dict[str, Any]) -> None:
    assert preferences.parse(json.dumps({"occurrences": [MARK | change]})) == []


def test_a_refusal_raises_invalid_model_reply() -> None:
    with pytest.raises(errors.InvalidModelReply):
        preferences.parse("I'd rather not.")


def test_only_turns_that_were_read_count_as_evidence() -> None:
    marks = [occurrence(VERY, 1, 2), occurrence(VERY, 8)]
    assert preferences.with_read_turns(marks, {("s1", 2), ("s2", 8)}) == [occurrence(VERY, 2)]


def inferred(**change: Any) -> Any:
    [parsed] = preferences.parse(json.dumps({"occurrences": [MARK | change]}))
    return preferences.to_draft(PreferenceCount(parsed.key, (parsed.evidence,), parsed, was_due=False))


def test_an_inferred_memory_is_marked_and_has_its_source() -> None:
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
