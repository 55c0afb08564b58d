"""SE1, SE3, SE6, SE7, LT13: where the state of a session is stored, and when it is deleted."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import func, select

from shared.conversation.state import scratch
from shared.conversation.state.table import state_store
from shared.conversation.state.types import TranscriptDraft
from shared.conversation.values.value import Str
from shared.foundation import config, errors
from shared.foundation.roles import Role
from shared.foundation.scope import Scope
from tests import state
from tests.agent import wait_until
from tests.badinput import problem
from tests.conftest import Gateway, running_gateway
from tests.integration.state.conftest import STORE_TYPES, OpenSession, SessionClient

_SECRET = "zqxsecret"


async def _fill(session: SessionClient) -> None:
    await session.set("plan", _SECRET)
    entry = {"role": "user", "content": _SECRET}
    await session.request("POST", "/transcript", entry, status=201, headers={"idempotency-key": uuid4().hex})
    await session.put("things", "doc", {"a": _SECRET})


async def test_tmp_stores_nothing_in_postgres(
    make_settings: Callable[..., config.Settings], tenant: str, open_session: OpenSession
) -> None:
    settings = make_settings(apart=True)
    async with running_gateway(settings, tenant) as gateway, state.watching(settings) as inspector:
        await _fill(await open_session(gateway, "tmp"))
        rows = await inspector.rows(tenant)
        assert not [name for name in rows if name.startswith(("state_", "transcript_entry"))]
        assert not [name for name, row in rows.items() if _SECRET in row]
        await _fill(await open_session(gateway, "basic_session"))
        tables = {name.split(" ")[0] for name in await inspector.rows(tenant)}
        assert {"state_store", "state_key", "transcript_entry", "state_collection"} <= tables


async def test_an_expired_tmp_store_is_empty_and_its_session_remains_usable(
    make_settings: Callable[..., config.Settings], tenant: str, open_session: OpenSession
) -> None:
    async with running_gateway(make_settings(tmp_ttl=1), tenant) as gateway:
        session = await open_session(gateway, "tmp")
        await _fill(session)

        async def is_expired() -> bool:
            response = await gateway.client.get(f"/v1/sessions/{session.id}/kv/plan")
            return response.status_code == 404

        await wait_until(is_expired)
        response = await session.request("GET", "/kv/plan", status=404)
        assert problem.parse_problem(response)["detail"] == "key not found: plan"
        assert (await session.read("/transcript"))["results"] == []
        assert (await session.read("/collections"))["results"] == []
        await session.request("DELETE", "/kv/plan")
        await session.set("plan", "anew")
        assert await session.keys() == ["plan"]


async def test_deleting_what_does_not_exist_writes_nothing(
    gateway: Gateway, open_session: OpenSession
) -> None:
    for store_type in STORE_TYPES:
        session = await open_session(gateway, store_type)
        await session.request("DELETE", "/kv/plan")
        await session.request("DELETE", "/collections/things")
        conflict = await session.request(
            "DELETE", "/collections/things", status=412, headers={"if-match": '"7"'}
        )
        assert "is not there" in problem.parse_problem(conflict)["detail"]
    pattern = f"*{{{gateway.tenant}:session:*"
    assert [name async for name in gateway.resources.redis.scan_iter(match=pattern, count=1000)] == []
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        assert await tx.scalar(select(func.count()).select_from(state_store)) == 0


async def test_every_write_renews_the_expiry_of_the_whole_tmp_store(
    gateway: Gateway, open_session: OpenSession
) -> None:
    session = await open_session(gateway, "tmp", ttl_seconds=1000)
    await session.set("plan", 1)
    redis, pattern = gateway.resources.redis, f"*state:{{{gateway.tenant}:session:{session.id}}}:*"
    names = [name async for name in redis.scan_iter(match=pattern, count=1000)]
    for name in names:
        await redis.pexpire(name, 60_000)
    await session.put("things", "doc", {})
    names = [name async for name in redis.scan_iter(match=pattern, count=1000)]
    assert len(names) == 5, "version, keys, order, labels, values"
    assert {await redis.pexpiretime(name) for name in names} == {await redis.pexpiretime(names[0])}
    assert 900_000 < await redis.pttl(names[0]) <= 1_000_000


async def test_a_write_renews_the_expiry_of_its_session(
    session: SessionClient, open_session: OpenSession
) -> None:
    expiring = await open_session(session.gateway, session.type, ttl_seconds=500)
    first_expiry = (await expiring.read(""))["expires_at"]
    await expiring.set("plan", 1)
    assert (await expiring.read(""))["expires_at"] > first_expiry


async def test_deleting_a_session_deletes_its_state(session: SessionClient) -> None:
    await session.gateway.client.delete(f"/v1/sessions/{session.id}")
    body = {"id": "twice", "store_types": [session.type]}
    for _ in range(2):
        await session.gateway.client.post("/v1/sessions", json=body)
        reopened = SessionClient(session.gateway, "twice", session.type)
        assert await reopened.keys() == []
        assert (await reopened.read("/transcript"))["results"] == []
        assert (await reopened.read("/collections"))["results"] == []
        await _fill(reopened)
        await session.gateway.client.delete("/v1/sessions/twice")
    await reopened.request("GET", "/kv", status=404)


async def test_the_first_of_several_store_types_is_used(gateway: Gateway) -> None:
    for types, first in ((["tmp", "basic_session"], "tmp"), ([], "tmp"), (None, "basic_session")):
        body = {} if types is None else {"store_types": types}
        opened = (await gateway.client.post("/v1/sessions", json=body)).json()
        await _fill(SessionClient(gateway, opened["id"], first))
        pattern = f"*state:{{{gateway.tenant}:session:{opened['id']}}}:*"
        names = [name async for name in gateway.resources.redis.scan_iter(match=pattern, count=1000)]
        assert bool(names) is (first == "tmp")


async def test_lt13_erasing_a_user_deletes_the_state_of_their_sessions_and_scratch_stores(
    make_settings: Callable[..., config.Settings], tenant: str, open_session: OpenSession
) -> None:
    settings = make_settings(apart=True)
    async with running_gateway(settings, tenant) as gateway, state.watching(settings) as inspector:
        for store_type in STORE_TYPES:
            await _fill(await open_session(gateway, store_type, user_id="ada"))
        for agent in ("default", "other"):
            params = {"agent_id": agent, "user_id": "ada"}
            body = {"value": _SECRET}
            await gateway.client.put(f"/v1/stores/notes-{agent}/kv/plan", params=params, json=body)
        await gateway.client.put("/v1/stores/notes/kv/plan", params={"user_id": "bob"}, json={"value": "his"})
        receipt = (await gateway.client.delete("/v1/users/ada")).json()
        assert receipt["stores"]["redis"] == "done"
        assert receipt["erased"]["scratch_stores"] == 2
        assert not [name for name, row in (await inspector.tenant_state(tenant)).items() if _SECRET in row]
        response = await gateway.client.get("/v1/stores/notes/kv/plan", params={"user_id": "bob"})
        assert response.json()["value"] == "his"


async def test_a_write_to_a_scratch_store_during_an_erasure_is_found_by_the_next_erasure(
    gateway: Gateway,
) -> None:
    store = await scratch.open_scratch(
        gateway.resources, Scope(gateway.tenant, user_id="ada"), "n", write=True
    )

    async def erase_user() -> int:
        receipt = await gateway.client.delete("/v1/users/ada")
        return int(receipt.json()["erased"]["scratch_stores"])

    assert await erase_user() == 0
    await store.set_key("plan", Str(_SECRET))
    assert await erase_user() == 1
    assert await store.list_keys(1) == []


async def test_a_bound_key_may_access_only_the_state_of_its_own_sessions(session: SessionClient) -> None:
    body = {"id": f"ada-{session.type}", "user_id": "ada", "store_types": [session.type]}
    await session.gateway.client.post("/v1/sessions", json=body)
    async with await session.gateway.new_client(user_id="ada") as client:
        for session_id, status in ((session.id, 404), (body["id"], 200)):
            base = f"/v1/sessions/{session_id}"
            responses = [
                await client.put(f"{base}/kv/a", json={"value": 1}),
                await client.get(f"{base}/kv"),
                await client.get(f"{base}/transcript"),
                await client.get(f"{base}/files"),
                await client.put(f"{base}/collections/a", json={"type": "doc", "value": {}}),
            ]
            assert {response.status_code for response in responses} == {status}


async def test_a_read_only_key_cannot_write(session: SessionClient) -> None:
    async with await session.gateway.new_client(rights=["read"]) as client:
        for path in (f"/v1/sessions/{session.id}/kv/a", "/v1/stores/notes/kv/a"):
            assert (await client.put(path, json={"value": 1})).status_code == 403
            assert (await client.delete(path)).status_code == 403
    assert await session.keys() == []


def _fields(response: httpx.Response, *fields: str) -> tuple[Any, ...]:
    assert response.status_code == 200, response.text
    return tuple(response.json()[field] for field in fields)


async def test_a_scratch_store_needs_no_session_and_is_identified_by_its_name(gateway: Gateway) -> None:
    client, path = gateway.client, "/v1/stores/notes"
    assert _fields(await client.get(path), "keys", "collections", "expires_at") == ([], [], None)
    assert _fields(await client.put(f"{path}/kv/a/b", json={"value": 1.0}), "value", "type") == (1.0, "float")
    body = {"type": "vec", "value": [[1, 0], [0, 1]], "index": True}
    tag = (await client.put(f"{path}/collections/points", json=body)).headers["etag"]
    keys, collections, expires_at = _fields(await client.get(path), "keys", "collections", "expires_at")
    assert keys == ["a/b"]
    assert [info["label"] for info in collections] == ["points"]
    assert expires_at.endswith("Z")
    assert _fields(await client.get(f"{path}/kv"), "next_cursor") == (None,)
    search = {"vector": [0, 1], "limit": 1}
    response = await client.post(f"{path}/collections/points/search", json=search)
    assert response.json()["results"] == [{"place": 1, "label": None, "score": 1.0}]
    assert (await client.get(f"{path}/collections/points")).headers["etag"] == tag
    assert (await client.put(f"{path}/collections/points", json=body)).status_code == 428
    conflict = await client.delete(f"{path}/collections/points", headers={"if-match": '"1"'})
    assert conflict.status_code == 412
    assert _fields(await client.delete(f"{path}/collections/points"), "deleted") == (True,)
    assert _fields(await client.get(f"{path}/collections"), "results") == ([],)
    assert _fields(await client.delete(path), "deleted") == (True,)
    assert _fields(await client.delete(path), "deleted") == (False,)
    assert (await client.get(f"{path}/kv/a/b")).status_code == 404


_OTHER_SCOPES: list[dict[str, str]] = [
    {},
    {"agent_id": "a"},
    {"user_id": "u"},
    {"agent_id": "a", "user_id": "v"},
]


@pytest.mark.parametrize("spelling", ["notes", "NOTES"])
@pytest.mark.parametrize("scope", _OTHER_SCOPES, ids=str)
async def test_a_name_of_a_scratch_store_belongs_to_the_scope_that_wrote_first(
    gateway: Gateway, scope: dict[str, str], spelling: str
) -> None:
    client, owner = gateway.client, {"agent_id": "a", "user_id": "u"}
    await client.put("/v1/stores/notes/kv/n", params=owner, json={"value": _SECRET})
    path = f"/v1/stores/{spelling}"
    refused = [
        await client.put(f"{path}/kv/n", params=scope, json={"value": 1}),
        await client.put(f"{path}/collections/c", params=scope, json={"type": "doc", "value": {}}),
    ]
    assert [response.status_code for response in refused] == [409, 409]
    assert {response.json()["detail"] for response in refused} == {f"the name '{spelling}' is taken"}
    assert (await client.get(path, params=scope)).json()["keys"] == []
    assert (await client.get(f"{path}/kv/n", params=scope)).status_code == 404
    assert (await client.delete(path, params=scope)).json()["deleted"] is False
    response = await client.get(f"{path}/kv/n", params=owner)
    assert response.json()["value"] == _SECRET


async def test_a_deleted_or_expired_scratch_store_leaves_its_name_to_others(
    make_settings: Callable[..., config.Settings], tenant: str
) -> None:
    async with running_gateway(make_settings(), tenant) as gateway:
        client, path = gateway.client, "/v1/stores/notes"
        await client.put(f"{path}/kv/n", params={"user_id": "ada"}, json={"value": _SECRET})
        await client.delete(path, params={"user_id": "ada"})
        assert (await client.put(f"{path}/kv/n", params={"user_id": "bob"}, json={"value": 1})).is_success
        names = gateway.resources.redis.scan_iter(match=f"*:scratch-name:{{{tenant}}}:*", count=1000)
        remaining = [await gateway.resources.redis.pttl(name) async for name in names]
        assert len(remaining) == 1
        assert remaining[0] > gateway.resources.settings.tmp_ttl * 1000


async def test_an_unsupported_operation_raises_an_error_that_names_the_store_and_the_operation(
    gateway: Gateway,
) -> None:
    """SE2: a scratch store has keys and collections, and no transcript."""
    notes = await scratch.open_scratch(gateway.resources, Scope(gateway.tenant), "notes", write=True)
    with pytest.raises(errors.Unsupported, match=r"^store 'tmp' does not support transcript$"):
        await notes.append(TranscriptDraft(Role.USER, "said"))
    with pytest.raises(errors.Unsupported):
        await notes.transcript(1)


@pytest.mark.parametrize("name", ["a%20b", "%2e%2e", "x" * 129])
async def test_a_scratch_store_has_a_name_of_one_segment(gateway: Gateway, name: str) -> None:
    response = await gateway.client.put(f"/v1/stores/{name}/kv/a", json={"value": 1})
    assert problem.names_violation(response, "name"), response.text
