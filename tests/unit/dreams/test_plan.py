"""DR2: a reply becomes a plan, whatever shape a model gives it, and every item stays one."""

import json
from typing import Any

import pytest

from shared.dreams.verification.plan import Deletion, Plan, Replacement, as_json, parse
from shared.foundation import errors, model_output

A, B = "00000000000a", "00000000000b"
SAVE = {"content": "User likes tea", "category": "food", "tags": ["drink"], "sourceIds": [A, B]}
SAVED = Replacement("User likes tea", "food", ("drink",), (A, B), None)
GONE = Deletion(A, "ephemeral")
REPLY = json.dumps({"toDelete": [{"id": A, "reason": "ephemeral"}], "toSave": [SAVE]})


@pytest.mark.parametrize(
    "reply",
    [
        REPLY,
        f"```json\n{REPLY}\n```",
        f"<think>first {{no}} then [x]</think>\n{REPLY}",
        f'<think>maybe {{"toDelete": ["{B}"]}}</think>{REPLY}',
        f'I start from {{"toDelete": [], "toSave": []}} and end with:\n{REPLY}\nDone.',
        f"Here you are: {REPLY} I hope {{that}} helps",
        REPLY[:-1],
        REPLY[:-2],
        REPLY[:-2] + ', {"content": "cut off in the mid',
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
def test_a_plan_is_read_past_thoughts_prose_fences_and_cuts(reply: str) -> None:
    assert parse(reply) == Plan((GONE,), (SAVED,))


@pytest.mark.parametrize(
    ("told", "deletions"),
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
def test_deletions_are_read_in_every_form(told: Any, deletions: list[tuple[str, str]]) -> None:
    read = parse(json.dumps({"toDelete": told, "toSave": []}))
    assert read.deletions == tuple(Deletion(*one) for one in deletions)


@pytest.mark.parametrize(
    ("told", "saved"),
    [
        (SAVE | {"importance": 0.7}, (SAVED.content, "food", ("drink",), (A, B), 0.7)),
        (SAVE | {"importance": 7}, (SAVED.content, "food", ("drink",), (A, B), 1.0)),
        (SAVE | {"importance": -1}, (SAVED.content, "food", ("drink",), (A, B), 0.0)),
        (SAVE | {"importance": True}, (SAVED.content, "food", ("drink",), (A, B), None)),
        (SAVE | {"importance": float("nan")}, (SAVED.content, "food", ("drink",), (A, B), None)),
        (SAVE | {"importance": 10**400}, (SAVED.content, "food", ("drink",), (A, B), 1.0)),
        (SAVE | {"sourceIds": f"{A}, {B}"}, (SAVED.content, "food", ("drink",), (A, B), None)),
        (SAVE | {"sourceIds": None}, (SAVED.content, "food", ("drink",), (), None)),
        (SAVE | {"sourceIds": [A, 5, None]}, (SAVED.content, "food", ("drink",), (A, "5", ""), None)),
        (SAVE | {"tags": "a, b"}, (SAVED.content, "food", ("a", "b"), (A, B), None)),
        (SAVE | {"tags": [1, "x"], "category": " "}, (SAVED.content, None, ("x",), (A, B), None)),
        (SAVE | {"content": 5}, ("", "food", ("drink",), (A, B), None)),
        ("User likes tea", ("User likes tea", None, (), (), None)),
        (None, ("", None, (), (), None)),
    ],
)
def test_replacements_are_read_in_every_form_and_none_is_dropped(told: Any, saved: tuple[Any, ...]) -> None:
    assert parse(json.dumps({"toDelete": [], "toSave": [told]})).replacements == (Replacement(*saved),)


@pytest.mark.parametrize(
    "reply", ["{}", '{"toDelete": [], "toSave": []}', '{"toSave": null}', "<think>a</think>{}"]
)
def test_nothing_to_do_is_an_empty_plan(reply: str) -> None:
    assert parse(reply) == Plan((), ())


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I can't help with that.",
        "[]",
        '{"answer": 5}',
        "{",
        "{" * 5000,
        '{"a":' * 50_000,
        "<think>{}",
        "null",
    ],
)
def test_a_refusal_is_no_plan(reply: str) -> None:
    with pytest.raises(errors.InvalidModelReply):
        parse(reply)


def test_a_deletion_whose_replacement_was_cut_off_is_still_only_a_deletion() -> None:
    cut = parse(f'{{"toDelete": [{{"id": "{A}", "reason": "duplicate"}}], "toSave": [{{"content": "User li')
    assert cut == Plan((Deletion(A, "duplicate"),), ())


def test_a_plan_as_json_reads_back_and_can_be_stored() -> None:
    assert parse(json.dumps(as_json(parse(REPLY)))) == parse(REPLY)
    odd = Plan((Deletion("\x00", "\ud800"),), (Replacement("a\x00", "\x00", ("\udfff",), ("\x00",), None),))
    kept = json.dumps(as_json(odd), ensure_ascii=False)
    assert kept.encode().decode().count("\ufffd") == 6


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1} {"a": 2}', {"a": 2}),
        ('{"a": [1, [2], {"b": 3}, {"c"', {"a": [1, [2], {"b": 3}]}),
        ('{"a": "cut', None),
        ('{"x": 1, "a": "cut', {"x": 1}),
        ('{"a": [1, 2,], "b": 3,', {"a": [1, 2], "b": 3}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": 1} {"a": 0}', {"a": 1}),
    ],
)
def test_one_object_is_read_as_far_as_it_is_whole(text: str, found: dict[str, Any] | None) -> None:
    if found is None:
        with pytest.raises(errors.InvalidModelReply):
            model_output.parse_object(text)
    else:
        assert model_output.parse_object(text) == found


def test_an_object_is_chosen_by_the_fields_it_is_asked_for() -> None:
    text = '{"plan": [1]} {"other": [2]}'
    assert model_output.parse_object(text, "plan") == {"plan": [1]}
    assert model_output.parse_object(text) == {"other": [2]}
    for spoken in (text, '{"neither": {"plan": [1'):
        with pytest.raises(errors.InvalidModelReply):
            model_output.parse_object(spoken, "neither")


def test_a_list_is_read_from_its_object_or_by_itself() -> None:
    assert model_output.parse_listed_objects('{"found": [{"a": 1}, 5]}', "found") == [{"a": 1}]
    assert model_output.parse_listed_objects('[{"a": 1}]', "found") == [{"a": 1}]
    assert model_output.parse_listed_objects('{"found": []}', "found") == []
    assert model_output.parse_listed_objects('{"found": [{"a": 1}, {"a": ', "found") == [{"a": 1}]
    with pytest.raises(errors.InvalidModelReply):
        model_output.parse_listed_objects("nothing", "found")
