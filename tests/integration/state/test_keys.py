"""SE1, SE2b, SE3, SE4, SE6: keys of a session behave alike in Postgres and in Redis."""

import math
from typing import Any

import pytest

from shared.conversation.sessions.state import open_state
from shared.conversation.values.value import Bool, Float, Int, Obj, Str, Value
from shared.foundation.scope import Caller
from tests.badinput import problem
from tests.conftest import Gateway, serving
from tests.integration.state.conftest import TYPES, Held, Opening

_CAP = 200

VALUES: list[tuple[Any, str]] = [
    (True, "bool"),
    (1, "int"),
    (2**63 - 1, "int"),
    (1.0, "float"),
    (-0.0, "float"),
    ({"type": "float", "value": "NaN"}, "float"),
    ({"type": "float", "bits": "fff8000000000123"}, "float"),
    ({"type": "float", "value": "-Infinity"}, "float"),
    ("", "str"),
    ("ключ \u2028 🗝", "str"),
    ({"type": "obj", "data": "AAEC/w==", "metadata": {"mime": "image/png"}}, "obj"),
]


@pytest.mark.parametrize(("value", "type_"), VALUES)
async def test_a_value_of_every_type_is_read_back_as_it_was_written(
    held: Held, value: Any, type_: str
) -> None:
    written = await held.set("plan", value)
    read = await held.read("/kv/plan")
    assert read == written
    assert (read["key"], read["type"], repr(read["value"])) == ("plan", type_, repr(value))
    assert read["updated_at"].endswith("Z")


async def test_values_of_python_callers_keep_their_bits(held: Held) -> None:
    values: list[Value] = [
        Float(math.nan),
        Float.of_bits("7ff0000000000001"),
        Float(-0.0),
        Bool(value=True),
        Int(1),
        Str("1"),
        Obj(bytes(range(256)), {"name": "all"}),
    ]
    resources, caller = held.gateway.resources, Caller("k", held.gateway.tenant, frozenset({"write"}))
    async with open_state(resources, caller, held.id, write=True) as store:
        for place, value in enumerate(values):
            await store.set_key(f"{place}", value)
    async with open_state(resources, caller, held.id) as store:
        assert [entry.value for entry in await store.list_keys(10)] == values


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (2**63, "whole number from -2^63"),
        (-(2**63) - 1, "whole number from -2^63"),
        (10**400, "whole number from -2^63"),
        (None, "must be true, false"),
        ([1], "must be true, false"),
        ({"type": "float", "value": "nan"}, "must be true, false"),
        ({"type": "float", "bits": "7ff8"}, "16 hexadecimal digits"),
        ({"type": "obj", "data": "not base64"}, "base64"),
        ({"type": "obj", "data": "", "metadata": {"a": 1}}, "texts"),
        ({"type": "int", "value": 1.5}, "whole number"),
        ({"kind": "int", "value": 1}, "must be true, false"),
    ],
)
async def test_an_invalid_value_is_rejected_and_never_wraps(held: Held, value: Any, rule: str) -> None:
    answer = await held.ask("PUT", "/kv/plan", {"value": value}, status=422)
    assert problem.names(answer, "value", rule), answer.text
    assert await held.keys() == []


async def test_a_number_that_is_not_valid_json_is_rejected(held: Held) -> None:
    for raw in ('{"value": NaN}', '{"value": 1e999}'):
        headers = {"content-type": "application/json"}
        answer = await held.ask("PUT", "/kv/plan", status=422, content=raw, headers=headers)
        assert problem.names(answer, "value")


async def test_keys_are_listed_in_the_order_of_their_last_write(held: Held) -> None:
    for key in ("a", "b", "c", "d"):
        await held.set(key, key)
    await held.set("b", "again")
    assert await held.keys() == ["a", "c", "d", "b"]


async def test_the_list_of_keys_is_read_page_by_page(held: Held) -> None:
    for place in range(7):
        await held.set(f"k{place}", place)
    found, cursor = [], ""
    while cursor is not None:
        told = await held.read("/kv", params={"limit": 3} | ({"cursor": cursor} if cursor else {}))
        found += [entry["value"] for entry in told["results"]]
        cursor = told["next_cursor"]
    assert found == list(range(7))


async def test_over_the_maximum_the_key_written_least_recently_is_deleted(held: Held) -> None:
    for place in range(_CAP):
        await held.set(f"k{place}", place)
    await held.set("k0", "again")
    await held.set("one more", 1)
    await held.ask("GET", "/kv/k1", status=404)
    assert (await held.read("/kv/k0"))["value"] == "again"
    cap = (await held.read("/files/kv.json"))["order"]
    assert (len(cap), cap[0], cap[-1]) == (_CAP, "k2", "one more")


@pytest.mark.parametrize("store_type", TYPES)
async def test_a_lowered_maximum_applies_from_the_next_write_on(
    make_settings: Any, tenant: str, open_held: Opening, store_type: str
) -> None:
    async with serving(make_settings(), tenant) as gateway:
        held = await open_held(gateway, store_type, id="older")
        for key in ("a", "b", "c", "d"):
            await held.set(key, 1)
    async with serving(make_settings(session_max_keys=2), tenant) as gateway:
        held = Held(gateway, "older", store_type)
        await held.set("e", 1)
        assert await held.keys() == ["d", "e"]


async def test_an_unknown_key_is_not_found_and_deleting_it_reports_false(held: Held) -> None:
    answer = await held.ask("GET", "/kv/nothing", status=404)
    assert problem.read(answer)["detail"] == "key not found: nothing"
    assert (await held.ask("DELETE", "/kv/nothing")).json() == {"key": "nothing", "deleted": False}
    await held.set("plan", 1)
    assert (await held.ask("DELETE", "/kv/plan")).json() == {"key": "plan", "deleted": True}
    await held.ask("GET", "/kv/plan", status=404)
    assert await held.keys() == []


@pytest.mark.parametrize("key", ["", "a/b", "kv/turns/files", "transcript", "a b", "ключ", "x" * 256, "a//b"])
async def test_any_text_that_a_url_can_contain_is_a_key(held: Held, key: str) -> None:
    await held.set(key, key)
    assert (await held.read(f"/kv/{key}"))["key"] == key
    assert await held.keys() == [key]
    assert (await held.ask("DELETE", f"/kv/{key}")).json()["deleted"] is True


@pytest.mark.parametrize(
    ("key", "status", "rule"), [("x" * 257, 413, "at most 256"), ("a/%2e%2e/b", 422, "'..' segment")]
)
async def test_a_key_that_could_not_be_read_back_is_rejected(
    held: Held, key: str, status: int, rule: str
) -> None:
    answer = await held.ask("PUT", f"/kv/{key}", {"value": 1}, status=status)
    assert problem.names(answer, "key", rule)


async def test_the_body_limit_applies_to_values_whatever_their_key_is(held: Held) -> None:
    await held.ask("PUT", "/kv/turns/batch", {"value": "x" * 1024 * 1024}, status=413)
    await held.ask("PUT", "/kv/turns/batch", {"value": "x" * 1000 * 1024})


async def test_working_memory_is_the_text_of_one_key_or_empty(held: Held) -> None:
    assert await held.read("/working-memory") == {"value": ""}
    await held.set("working_memory", "Ada waits at the gate.")
    assert await held.read("/working-memory") == {"value": "Ada waits at the gate."}
    await held.set("working_memory", 1.5)
    assert await held.read("/working-memory") == {"value": "1.5"}


async def test_keys_of_an_unknown_session_are_not_found_with_a_detail_that_names_it(gateway: Gateway) -> None:
    nowhere = Held(gateway, "nowhere", "tmp")
    for method, path, body in [
        ("GET", "/kv", None),
        ("GET", "/kv/a", None),
        ("PUT", "/kv/a", {"value": 1}),
        ("DELETE", "/kv/a", None),
        ("GET", "/working-memory", None),
    ]:
        answer = await nowhere.ask(method, path, body, status=404)
        assert problem.read(answer)["detail"] == "session not found: nowhere"
