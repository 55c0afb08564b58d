"""DR2: a reply in any format becomes a plan, and every item stays an item of it."""

import json
from typing import Any

import pytest

from shared.dreams.verification.plan import Deletion, Plan, Replacement, as_json, parse
from shared.foundation import errors, model_output

A, B = "00000000000a", "00000000000b"
REPLACEMENT_ITEM = {"content": "User likes tea", "category": "food", "tags": ["drink"], "sourceIds": [A, B]}
REPLACEMENT = Replacement("User likes tea", "food", ("drink",), (A, B), None)
DELETION = Deletion(A, "ephemeral")
REPLY = json.dumps({"toDelete": [{"id": A, "reason": "ephemeral"}], "toSave": [REPLACEMENT_ITEM]})


@pytest.mark.parametrize(
    "reply",
    [
        REPLY,
        f"```json\n{REPLY}\n```",
        f"<think>first {{no}} then [x]</think>\n{REPLY}",
        f'<think>maybe {{"toDelete": ["{B}"]}}</think>{REPLY}',
        f'I start from {{"toDelete": [], "toSave": []}} and end with:\n{REPLY}\nDone.',
        f"Here you are: {REPLY} I hope {{that}} helps",
        REPLY.replace("}]", "},]"),
        REPLY.replace("}]}", "},],}"),
        REPLY.replace(", ", ",\n\n  "),
        REPLY.replace("toDelete", "to_delete")
        .replace("toSave", "to_save")
        .replace("sourceIds", "source_ids"),
        REPLY.replace(A, f"[ID:{A}]"),
        REPLY.replace(A, f" id: {A.upper()} "),
    ],
)
def test_a_plan_is_parsed_despite_thoughts_prose_and_fences(reply: str) -> None:
    assert parse(reply) == Plan((DELETION,), (REPLACEMENT,))


@pytest.mark.parametrize(
    ("value", "deletions"),
    [
        ([A], [(A, "duplicate")]),
        ([{"id": A}], [(A, "duplicate")]),
        ([{"id": A, "reason": " Ephemeral "}], [(A, "ephemeral")]),
        ([{"id": A, "reason": None}, B], [(A, "duplicate"), (B, "duplicate")]),
        ([A, A], [(A, "duplicate"), (A, "duplicate")]),
        (A, [(A, "duplicate")]),
        ([123456789012], [("123456789012", "duplicate")]),
        ([None, [], True, 1.5, {}], [("", "duplicate")] * 5),
        (None, []),
        ([], []),
    ],
)
def test_deletions_are_parsed_in_every_form(value: Any, deletions: list[tuple[str, str]]) -> None:
    parsed = parse(json.dumps({"toDelete": value, "toSave": []}))
    assert parsed.deletions == tuple(Deletion(*fields) for fields in deletions)


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (REPLACEMENT_ITEM | {"importance": 0.7}, (REPLACEMENT.content, "food", ("drink",), (A, B), 0.7)),
        (REPLACEMENT_ITEM | {"importance": 7}, (REPLACEMENT.content, "food", ("drink",), (A, B), 1.0)),
        (REPLACEMENT_ITEM | {"importance": -1}, (REPLACEMENT.content, "food", ("drink",), (A, B), 0.0)),
        (REPLACEMENT_ITEM | {"importance": True}, (REPLACEMENT.content, "food", ("drink",), (A, B), None)),
        (
            REPLACEMENT_ITEM | {"importance": float("nan")},
            (REPLACEMENT.content, "food", ("drink",), (A, B), None),
        ),
        (REPLACEMENT_ITEM | {"importance": 10**400}, (REPLACEMENT.content, "food", ("drink",), (A, B), 1.0)),
        (
            REPLACEMENT_ITEM | {"sourceIds": f"{A}, {B}"},
            (REPLACEMENT.content, "food", ("drink",), (A, B), None),
        ),
        (REPLACEMENT_ITEM | {"sourceIds": None}, (REPLACEMENT.content, "food", ("drink",), (), None)),
        (
            REPLACEMENT_ITEM | {"sourceIds": [A, 5, None]},
            (REPLACEMENT.content, "food", ("drink",), (A, "5", ""), None),
        ),
        (REPLACEMENT_ITEM | {"tags": "a, b"}, (REPLACEMENT.content, "food", ("a", "b"), (A, B), None)),
        (
            REPLACEMENT_ITEM | {"tags": [1, "x"], "category": " "},
            (REPLACEMENT.content, None, ("x",), (A, B), None),
        ),
        (REPLACEMENT_ITEM | {"content": 5}, ("", "food", ("drink",), (A, B), None)),
        ("User likes tea", ("User likes tea", None, (), (), None)),
        (None, ("", None, (), (), None)),
    ],
)
def test_replacements_are_parsed_in_every_form_and_none_is_dropped(
    value: Any, fields: tuple[Any, ...]
) -> None:
    assert parse(json.dumps({"toDelete": [], "toSave": [value]})).replacements == (Replacement(*fields),)


@pytest.mark.parametrize(
    "reply", ['{"toDelete": [], "toSave": []}', '{"toSave": null}', '{} {"toSave": []} {}']
)
def test_nothing_to_do_is_an_empty_plan(reply: str) -> None:
    assert parse(reply) == Plan((), ())


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I can't help with that.",
        "[]",
        "{}",
        "<think>a</think>{}",
        '{"answer": 5}',
        "{",
        "{" * 5000,
        '{"a":' * 50_000,
        "<think>{}",
        "null",
    ],
)
def test_a_refusal_raises_invalid_model_reply(reply: str) -> None:
    with pytest.raises(errors.InvalidModelReply):
        parse(reply)


@pytest.mark.parametrize("end", range(1, len(REPLY), 7))
def test_nothing_of_a_plan_that_was_cut_off_counts(end: int) -> None:
    with pytest.raises(errors.CutOffReply):
        parse(REPLY[:end])


def test_a_plan_as_json_parses_to_the_same_plan_and_can_be_stored() -> None:
    assert parse(json.dumps(as_json(parse(REPLY)))) == parse(REPLY)
    unstorable = Plan(
        (Deletion("\x00", "\ud800"),), (Replacement("a\x00", "\x00", ("\udfff",), ("\x00",), None),)
    )
    text = json.dumps(as_json(unstorable), ensure_ascii=False)
    assert text.encode().decode().count("\ufffd") == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1} {"a": 2}', {"a": 2}),
        ('{"a": [1, [2], {"b": 3}, {"c"', None),
        ('{"a": "cut', None),
        ('{"a": 1} {"a": 2, "b": oops}', None),
        ('{"a": oops} {"a": 2}', {"a": 2}),
        ('{"a": [1, 2,], "b": 3,}', {"a": [1, 2], "b": 3}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": 1} {"a": 0}', {"a": 1}),
    ],
)
def test_an_object_counts_if_it_is_whole(text: str, expected: dict[str, Any] | None) -> None:
    if expected is None:
        with pytest.raises(errors.InvalidModelReply):
            model_output.parse_object(text)
    else:
        assert model_output.parse_object(text) == expected


def test_an_object_is_chosen_by_the_required_fields() -> None:
    text = '{"plan": [1]} {"other": [2]}'
    assert model_output.parse_object(text, "plan") == {"plan": [1]}
    assert model_output.parse_object(text) == {"other": [2]}
    for reply in (text, '{"neither": {"plan": [1'):
        with pytest.raises(errors.InvalidModelReply):
            model_output.parse_object(reply, "neither")


def test_a_list_is_parsed_from_its_object_or_by_itself() -> None:
    assert model_output.parse_listed_objects('{"found": [{"a": 1}, 5]}', "found") == [{"a": 1}]
    assert model_output.parse_listed_objects('[{"a": 1}]', "found") == [{"a": 1}]
    for reply in ('{"found": []}', "[]"):
        assert model_output.parse_listed_objects(reply, "found") == []
    with pytest.raises(errors.CutOffReply):
        model_output.parse_listed_objects('{"found": [{"a": 1}, {"a": ', "found")
    assert model_output.parse_listed_objects('{"found": {"a": 1}}', "found") == [{"a": 1}]
    for reply in ("nothing", "{}", '{"error": "I cannot"}', '{"found": ["a"]}', '{"found": "a"}'):
        with pytest.raises(errors.InvalidModelReply):
            model_output.parse_listed_objects(reply, "found")
