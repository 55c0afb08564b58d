"""LT17: memories under keys that their callers chose, and the namespaces of the keys."""

import asyncio
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest

from shared.memory.longterm import queries, scope_queries
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.longterm.by_key import (
    BY_KEY,
    CONFLICT,
    CREATED,
    FAILED,
    REFUSED,
    Scope,
    delete,
    get,
    put,
)
from tests.sql import sql


async def test_a_put_creates_and_the_next_replaces_all_but_the_id(keeper: Agent, scope: Scope) -> None:
    fields = {"category": "a/b", "tags": ["x"], "metadata": {"k": "v"}, "importance": 0.9}
    first = await put(keeper, scope, "home", "Ada lives in Bonn.", status=CREATED, **fields)
    second = await put(keeper, scope, "home", "Ada lives in Rome.")
    assert (second["id"], second["created_at"]) == (first["id"], first["created_at"])
    assert (first["version"], second["version"]) == (1, 2)
    assert (second["category"], second["tags"], second["metadata"], second["importance"]) == (
        None,
        [],
        {},
        0.5,
    )
    assert await get(keeper, scope, "home") == second
    assert await keeper.search_contents("where does Ada live", **scope) == ["Ada lives in Rome."]
    created, replaced = await keeper.history(first["id"])
    assert (created["action"], replaced["action"]) == ("created", "replaced")
    assert (replaced["before"]["content"], replaced["after"]["content"]) == (
        first["content"],
        second["content"],
    )
    assert [item["after"]["version"] for item in (created, replaced)] == [1, 2]


async def test_a_key_names_a_memory_of_exactly_its_namespace_and_scope(keeper: Agent, scope: Scope) -> None:
    common = {"agent_id": scope["agent_id"]}
    await put(keeper, common, "k", "common", status=CREATED)
    await get(keeper, scope, "k", status=HTTPStatus.NOT_FOUND)
    assert (await delete(keeper, scope, "k"))["deleted"] is False
    await put(keeper, scope, "k", "own", status=CREATED)
    await put(keeper, scope, "k", "in a namespace", status=CREATED, params={"namespace": "a/b"})
    assert (await get(keeper, common, "k"))["content"] == "common"
    assert (await get(keeper, scope, "k"))["content"] == "own"
    assert (await get(keeper, scope, "k", namespace="a/b"))["content"] == "in a namespace"
    await get(keeper, scope, "k", namespace="a", status=HTTPStatus.NOT_FOUND)


@pytest.mark.parametrize(
    "key",
    [
        "a/b?c=d&e #%2F",
        " x ",
        "..",
        "Straße",
        "\u4f60\u597d",
        "\U0001f9d1\u200d\U0001f680",
        "\U0010fffd" * 256,
    ],
)
async def test_a_key_may_have_any_characters_but_controls(keeper: Agent, scope: Scope, key: str) -> None:
    memory = await put(keeper, scope, key, f"under {len(key)} characters", status=CREATED)
    assert memory["key"] == key
    assert (await get(keeper, scope, key))["id"] == memory["id"]
    assert (await delete(keeper, scope, key))["deleted"] is True


@pytest.mark.parametrize("key", ["", " ", "a\nb", "\u2028", "\x7f", "x" * 257])
async def test_a_bad_key_is_refused_and_named(keeper: Agent, scope: Scope, key: str) -> None:
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE if len(key) > 256 else REFUSED
    for method, more in (("PUT", {"json": {"content": "x"}}), ("GET", {}), ("DELETE", {})):
        params = {"key": key, **scope}
        problem = await keeper.request(method, BY_KEY, params=params, status=status, **more)
        assert [violation["field"] for violation in problem["errors"]] == ["key"]


@pytest.mark.parametrize("field", ["key", "namespace", "agent_id", "user_id"])
async def test_a_body_that_contradicts_the_query_is_refused(keeper: Agent, scope: Scope, field: str) -> None:
    params = {"key": "k", "namespace": "n", **scope}
    body = {"content": "x", **params}
    problem = await keeper.request("PUT", BY_KEY, params=params, json=body | {field: "other"}, status=REFUSED)
    assert [violation["field"] for violation in problem["errors"]] == [field]
    memory = await keeper.request("PUT", BY_KEY, params=params, json=body, status=CREATED)
    assert {name: memory[name] for name in params} == params


async def test_a_namespace_needs_a_key_and_is_a_path(keeper: Agent, scope: Scope) -> None:
    body = {"content": "x", "namespace": "n", **scope}
    problem = await keeper.request("POST", "/v1/memories", json=body, status=REFUSED)
    assert [violation["field"] for violation in problem["errors"]] == ["namespace"]
    await put(keeper, scope, "k", "x", status=REFUSED, params={"namespace": "a//b"})


async def test_a_save_with_a_key_writes_like_a_put_and_a_batch_in_its_order(
    keeper: Agent, scope: Scope
) -> None:
    first = await keeper.save("one", key="k", **scope)
    second = await keeper.save("two", key="k", **scope)
    assert (second["id"], second["version"]) == (first["id"], 2)
    items: list[Json] = [
        {"content": "three", "key": "k"},
        {"content": "plain"},
        {"content": "four", "key": "k"},
        {"content": "of a namespace", "key": "k", "namespace": "n"},
        {"content": "plain"},
    ]
    body = {"memories": [item | scope for item in items]}
    results = (await keeper.request("POST", "/v1/memories/batch", json=body, status=CREATED))["results"]
    assert [result["content"] for result in results] == [item["content"] for item in items]
    assert [result["version"] for result in results[::2][:2]] == [3, 4]
    assert results[1]["id"] == results[4]["id"]
    assert (await get(keeper, scope, "k"))["content"] == "four"
    assert len(await keeper.history(first["id"])) == 4
    assert await keeper.search_contents("four", **scope) == ["four"]


async def test_two_keys_may_hold_one_text_and_neither_is_a_duplicate(keeper: Agent, scope: Scope) -> None:
    text = "The gate opens at seven."
    ids = {(await put(keeper, scope, key, text, status=CREATED))["id"] for key in ("a", "b")}
    plain = await keeper.save(text, **scope)
    repeated = await keeper.save(text, **scope)
    assert len({*ids, plain["id"]}) == 3
    assert (repeated["id"], repeated["reinforcement_count"]) == (plain["id"], 2)
    assert [(await keeper.memory(id_))["reinforcement_count"] for id_ in ids] == [1, 1]
    changed = await keeper.request("PATCH", f"/v1/memories/{min(ids)}", json={"content": text.upper()})
    assert changed["content"] == text.upper()


async def test_conditions_of_a_put_and_a_delete_by_key(keeper: Agent, scope: Scope) -> None:
    await put(keeper, scope, "k", "x", status=FAILED, headers={"if-match": '"1"'})
    await put(keeper, scope, "k", "x", status=FAILED, headers={"if-match": "*"})
    only_new = {"if-none-match": "*"}
    await put(keeper, scope, "k", "one", status=CREATED, headers=only_new)
    await put(keeper, scope, "k", "two", status=FAILED, headers=only_new)
    await put(keeper, scope, "k", "two", status=FAILED, headers={"if-match": '"2"'})
    assert (await get(keeper, scope, "k"))["content"] == "one"
    assert (await put(keeper, scope, "k", "two", headers={"if-match": '"1"'}))["version"] == 2
    await delete(keeper, scope, "k", headers={"if-match": '"1"'}, status=FAILED)
    assert (await delete(keeper, scope, "k", headers={"if-match": '"2"'}))["deleted"] is True
    await delete(keeper, scope, "k", headers={"if-match": '"2"'}, status=FAILED)


async def test_a_repeated_put_gets_the_first_response_whatever_was_written_since(
    keeper: Agent, scope: Scope
) -> None:
    key = uuid4().hex
    headers = {"idempotency-key": key, "if-none-match": "*"}
    first = await put(keeper, scope, "k", "one", status=CREATED, headers=headers)
    await put(keeper, scope, "k", "two")
    assert await put(keeper, scope, "k", "one", status=CREATED, headers=headers) == first
    assert (await get(keeper, scope, "k"))["content"] == "two"
    await put(keeper, scope, "other", "one", status=CONFLICT, headers=headers)
    await delete(keeper, scope, "k")
    await put(keeper, scope, "k", "one", status=CONFLICT, headers=headers)
    await get(keeper, scope, "k", status=HTTPStatus.NOT_FOUND)


async def test_twenty_writers_of_one_key_leave_one_memory_and_every_write_in_its_history(
    keeper: Agent, scope: Scope, module_gateway: Gateway
) -> None:
    texts = [f"Clerk {number} has the lantern." for number in range(20)]
    responses = await asyncio.gather(
        *(
            keeper.client.put(BY_KEY, params={"key": "lantern", **scope}, json={"content": text})
            for text in texts
        )
    )
    assert sorted(response.status_code for response in responses) == [200] * 19 + [201]
    assert sorted(response.json()["version"] for response in responses) == list(range(1, 21))
    memory = await get(keeper, scope, "lantern")
    rows = await sql(
        module_gateway, "SELECT id FROM memory WHERE agent_id = :agent_id", agent_id=scope["agent_id"]
    )
    assert [row.id for row in rows] == [memory["id"]]
    history = await keeper.history(memory["id"])
    assert [item["after"]["version"] for item in history] == list(range(1, 21))
    assert sorted(item["after"]["content"] for item in history) == sorted(texts)
    assert memory["content"] == history[-1]["after"]["content"]
    assert await keeper.search_contents("clerk lantern", **scope) == [memory["content"]]


async def test_of_twenty_writers_who_want_a_new_key_one_gets_it(keeper: Agent, scope: Scope) -> None:
    requests = (
        keeper.client.put(
            BY_KEY, params={"key": "k", **scope}, json={"content": f"{n}"}, headers={"if-none-match": "*"}
        )
        for n in range(20)
    )
    statuses = sorted(response.status_code for response in await asyncio.gather(*requests))
    assert statuses == [201] + [412] * 19


async def test_puts_and_deletions_of_one_key_at_once_all_succeed(keeper: Agent, scope: Scope) -> None:
    async def write(number: int) -> int:
        if number % 2:
            return (await keeper.client.delete(BY_KEY, params={"key": "k", **scope})).status_code
        body = {"content": f"text {number}"}
        return (await keeper.client.put(BY_KEY, params={"key": "k", **scope}, json=body)).status_code

    statuses = set(await asyncio.gather(*(write(number) for number in range(40))))
    assert statuses <= {200, 201}


async def test_dreams_are_shown_a_key_but_may_not_merge_it(
    keeper: Agent, scope: Scope, module_gateway: Gateway
) -> None:
    keyed = await put(keeper, scope, "k", "Ada likes trains.", status=CREATED)
    closed = await keeper.save("Ada likes planes.", valid_until="2999-01-01T00:00:00Z", **scope)
    expiring = await keeper.save("Ada likes ferries.", expires_at="2999-01-01T00:00:00Z", **scope)
    plain = await keeper.save("Ada likes bicycles.", **scope)
    memory_scope = (await _load(module_gateway, [plain["id"]]))[0].scope
    async with module_gateway.resources.postgres.for_tenant(module_gateway.tenant) as tx:
        shown = await scope_queries.list_scope(tx, memory_scope)
        mergeable = await scope_queries.list_mergeable(tx, memory_scope)
    ids = {memory["id"] for memory in (keyed, closed, expiring, plain)}
    assert {memory.id for memory in shown} == ids
    assert {memory.id for memory in mergeable} == {plain["id"]}


async def _load(gateway: Gateway, ids: list[str]) -> Any:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return await queries.read(tx, ids)
