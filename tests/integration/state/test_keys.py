"""SE1, SE2b, SE3, SE4, SE6: keys of a session behave alike in Postgres and in Redis."""

import math
from typing import Any

import pytest

from shared.conversation.sessions.state import open_state
from shared.conversation.values.value import Bool, Float, Int, Obj, Str, Value
from shared.foundation.scope import Caller
from tests.badinput import problem
from tests.conftest import Gateway, running_gateway
from tests.integration.state.conftest import STORE_TYPES, OpenSession, SessionClient

_MAX_KEYS = 20

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


@pytest.mark.parametrize(("value", "value_type"), VALUES)
async def test_a_value_of_every_type_is_read_back_as_it_was_written(
    session: SessionClient, value: Any, value_type: str
) -> None:
    written_key = await session.set("plan", value)
    stored_key = await session.read("/kv/plan")
    assert stored_key == written_key
    assert (stored_key["key"], stored_key["type"]) == ("plan", value_type)
    assert repr(stored_key["value"]) == repr(value)
    assert stored_key["updated_at"].endswith("Z")


async def test_values_of_python_callers_keep_their_bits(session: SessionClient) -> None:
    values: list[Value] = [
        Float(math.nan),
        Float.of_bits("7ff0000000000001"),
        Float(-0.0),
        Bool(value=True),
        Int(1),
        Str("1"),
        Obj(bytes(range(256)), {"name": "all"}),
    ]
    resources, caller = session.gateway.resources, Caller("k", session.gateway.tenant, frozenset({"write"}))
    async with open_state(resources, caller, session.id, write=True) as store:
        for position, value in enumerate(values):
            await store.set_key(f"{position}", value)
    async with open_state(resources, caller, session.id) as store:
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
async def test_an_invalid_value_is_rejected_and_never_wraps(
    session: SessionClient, value: Any, rule: str
) -> None:
    response = await session.request("PUT", "/kv/plan", {"value": value}, status=422)
    assert problem.names_violation(response, "value", rule), response.text
    assert await session.keys() == []


async def test_a_number_that_is_not_valid_json_is_rejected(session: SessionClient) -> None:
    for raw in ('{"value": NaN}', '{"value": 1e999}'):
        headers = {"content-type": "application/json"}
        response = await session.request("PUT", "/kv/plan", status=422, content=raw, headers=headers)
        assert problem.names_violation(response, "value")


async def test_keys_are_listed_in_the_order_of_their_last_write(session: SessionClient) -> None:
    for key in ("a", "b", "c", "d"):
        await session.set(key, key)
    await session.set("b", "again")
    assert await session.keys() == ["a", "c", "d", "b"]


async def test_the_list_of_keys_is_read_page_by_page(session: SessionClient) -> None:
    for position in range(7):
        await session.set(f"k{position}", position)
    values, cursor = [], ""
    while cursor is not None:
        page = await session.read("/kv", params={"limit": 3} | ({"cursor": cursor} if cursor else {}))
        values += [entry["value"] for entry in page["results"]]
        cursor = page["next_cursor"]
    assert values == list(range(7))


@pytest.mark.parametrize("store_type", STORE_TYPES)
async def test_over_the_maximum_the_key_written_least_recently_is_deleted(
    make_settings: Any, tenant: str, open_session: OpenSession, store_type: str
) -> None:
    assert make_settings().session_max_keys == 200
    async with running_gateway(make_settings(session_max_keys=_MAX_KEYS), tenant) as gateway:
        await _exceed_the_maximum(await open_session(gateway, store_type))


async def _exceed_the_maximum(session: SessionClient) -> None:
    for position in range(_MAX_KEYS):
        await session.set(f"k{position}", position)
    await session.set("k0", "again")
    await session.set("one more", 1)
    await session.request("GET", "/kv/k1", status=404)
    assert (await session.read("/kv/k0"))["value"] == "again"
    keys = (await session.read("/files/kv.json"))["order"]
    assert (len(keys), keys[0], keys[-1]) == (_MAX_KEYS, "k2", "one more")


@pytest.mark.parametrize("store_type", STORE_TYPES)
async def test_a_lowered_maximum_applies_from_the_next_write_on(
    make_settings: Any, tenant: str, open_session: OpenSession, store_type: str
) -> None:
    async with running_gateway(make_settings(), tenant) as gateway:
        session = await open_session(gateway, store_type, id="older")
        for key in ("a", "b", "c", "d"):
            await session.set(key, 1)
    async with running_gateway(make_settings(session_max_keys=2), tenant) as gateway:
        session = SessionClient(gateway, "older", store_type)
        await session.set("e", 1)
        assert await session.keys() == ["d", "e"]


async def test_an_unknown_key_is_not_found_and_deleting_it_reports_false(session: SessionClient) -> None:
    response = await session.request("GET", "/kv/nothing", status=404)
    assert problem.parse_problem(response)["detail"] == "key not found: nothing"
    assert (await session.request("DELETE", "/kv/nothing")).json() == {"key": "nothing", "deleted": False}
    await session.set("plan", 1)
    assert (await session.request("DELETE", "/kv/plan")).json() == {"key": "plan", "deleted": True}
    await session.request("GET", "/kv/plan", status=404)
    assert await session.keys() == []


@pytest.mark.parametrize("key", ["", "a/b", "kv/turns/files", "transcript", "a b", "ключ", "x" * 256, "a//b"])
async def test_any_text_that_a_url_can_contain_is_a_key(session: SessionClient, key: str) -> None:
    await session.set(key, key)
    assert (await session.read(f"/kv/{key}"))["key"] == key
    assert await session.keys() == [key]
    assert (await session.request("DELETE", f"/kv/{key}")).json()["deleted"] is True


@pytest.mark.parametrize(
    ("key", "status", "rule"), [("x" * 257, 413, "at most 256"), ("a/%2e%2e/b", 422, "'..' segment")]
)
async def test_a_key_that_could_not_be_read_back_is_rejected(
    session: SessionClient, key: str, status: int, rule: str
) -> None:
    response = await session.request("PUT", f"/kv/{key}", {"value": 1}, status=status)
    assert problem.names_violation(response, "key", rule)


async def test_the_body_limit_applies_to_values_whatever_their_key_is(session: SessionClient) -> None:
    await session.request("PUT", "/kv/turns/batch", {"value": "x" * 1024 * 1024}, status=413)
    await session.request("PUT", "/kv/turns/batch", {"value": "x" * 1000 * 1024})


async def test_working_memory_is_the_text_of_one_key_or_empty(session: SessionClient) -> None:
    assert await session.read("/working-memory") == {"value": ""}
    await session.set("working_memory", "Ada waits at the gate.")
    assert await session.read("/working-memory") == {"value": "Ada waits at the gate."}
    await session.set("working_memory", 1.5)
    assert await session.read("/working-memory") == {"value": "1.5"}


async def test_keys_of_an_unknown_session_are_not_found_with_a_detail_that_names_it(gateway: Gateway) -> None:
    unknown = SessionClient(gateway, "nowhere", "tmp")
    for method, path, body in [
        ("GET", "/kv", None),
        ("GET", "/kv/a", None),
        ("PUT", "/kv/a", {"value": 1}),
        ("DELETE", "/kv/a", None),
        ("GET", "/working-memory", None),
    ]:
        response = await unknown.request(method, path, body, status=404)
        assert problem.parse_problem(response)["detail"] == "session not found: nowhere"
