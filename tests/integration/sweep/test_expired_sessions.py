"""SE9, SE10: an expired session is deleted with all its records; the index follows the observations."""

from typing import Any

import pytest

from shared.foundation.stages import RecordKind
from shared.lifecycle.reindex import rebuild as rebuild_index
from tests.integration.sweep.stack import TestStack


async def _observe(stack: TestStack, session: str, content: str) -> str:
    body = {"kind": "fact", "content": content}
    response = await stack.client.post(f"/v1/sessions/{session}/observations", json=body)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def _search(stack: TestStack, query: str) -> list[str]:
    response = (await stack.client.post("/v1/observations/search", json={"query": query})).json()
    assert response["degraded"] == []
    return [result["id"] for result in response["results"]]


async def test_an_expired_session_is_not_found_at_once_and_the_sweep_deletes_its_observations(
    stack: TestStack,
) -> None:
    expired, unexpired = await stack.open_session(ttl_seconds=60), await stack.open_session(ttl_seconds=60)
    for session in (expired, unexpired):
        await stack.add_turn(session, "marmalade")
    await _observe(stack, expired, "marmalade")
    unexpired_observation = await _observe(stack, unexpired, "marmalade")
    await stack.backdate("session", "expires_at", 0.001, id=expired)
    for path in ("", "/turns", "/observations"):
        assert await stack.status_of(f"/v1/sessions/{expired}{path}") == 404
        assert await stack.status_of(f"/v1/sessions/{unexpired}{path}") == 200
    turn = {"role": "user", "content": "too late"}
    assert (await stack.client.post(f"/v1/sessions/{expired}/turns", json=turn)).status_code == 404
    assert await _search(stack, "marmalade") == [unexpired_observation]
    turns = (await stack.client.post("/v1/turns/search", json={"query": "marmalade"})).json()["results"]
    assert [item["session_id"] for item in turns] == [unexpired]
    assert (await stack.sweep()).expired_sessions == 1
    assert await stack.sql("SELECT id FROM observation") == [(unexpired_observation,)]
    assert await stack.points(RecordKind.OBSERVATION) == {(unexpired_observation, 1)}
    assert await _search(stack, "marmalade") == [unexpired_observation]


@pytest.mark.parametrize("store_type", ["basic_session", "tmp"])
async def test_an_expired_session_is_deleted_with_keys_transcript_collections_and_window(
    stack: TestStack, store_type: str
) -> None:
    """SE9. A new session with the same id finds nothing of the old one."""
    values = {"kv/k": {"value": "marmalade"}, "collections/c": {"type": "list", "value": ["marmalade"]}}
    fields: dict[str, Any] = {"id": f"again-{store_type}", "ttl_seconds": 3600, "store_types": [store_type]}
    expired = await stack.open_session(**fields)
    path = f"/v1/sessions/{expired}"
    for route, body in values.items():
        assert (await stack.client.put(f"{path}/{route}", json=body)).status_code == 200
    message = {"role": "user", "content": "marmalade"}
    for route in ("transcript", "turns"):
        assert (await stack.client.post(f"{path}/{route}", json=message)).status_code == 201
    await stack.backdate("session", "expires_at", 0.001, id=expired)
    routes = [*values, "kv", "collections", "transcript", "turns", "files"]
    assert [await stack.status_of(f"{path}/{route}") for route in routes] == [404] * len(routes)
    response = await stack.client.post("/v1/sessions", json=fields)
    assert (response.status_code, "is over" in response.json()["detail"]) == (409, True)
    assert int(response.headers["retry-after"]) >= 1
    assert (await stack.sweep()).expired_sessions == 1
    for table in ("state_store", "state_key", "transcript_entry", "state_collection", "turn"):
        assert await stack.sql(f"SELECT 1 FROM {table}") == [], table  # noqa: S608
    assert [key async for key in stack.resources.redis.scan_iter(match=f"*{stack.tenant}*{expired}*")] == []
    await stack.open_session(**fields)
    for route in ("kv", "collections", "transcript", "turns"):
        assert (await stack.client.get(f"{path}/{route}")).json()["results"] == []


async def test_points_without_an_observation_are_deleted_and_observations_without_a_point_written_again(
    stack: TestStack,
) -> None:
    """IX5."""
    session = await stack.open_session()
    one_id, other_id = (
        await _observe(stack, session, "marmalade"),
        await _observe(stack, session, "marmalade jar"),
    )
    await stack.resources.index_writer.close()
    await stack.add_point(RecordKind.OBSERVATION, "nobody", 1)
    await stack.add_point(RecordKind.OBSERVATION, one_id, 2)
    assert (await stack.sweep()).orphan_points == 2
    assert await stack.points(RecordKind.OBSERVATION) == {(one_id, 1), (other_id, 1)}
    await stack.delete_points(RecordKind.OBSERVATION, [one_id])
    assert await _search(stack, "marmalade") == [other_id]
    assert (await stack.sweep()).missing_points == 1
    await stack.process_all()
    assert await stack.points(RecordKind.OBSERVATION) == {(one_id, 1), (other_id, 1)}


async def test_a_reindex_rebuilds_observations_and_loses_none(stack: TestStack) -> None:
    """IX2."""
    session = await stack.open_session()
    observation_ids = {await _observe(stack, session, f"marmalade {n}") for n in range(3)}
    before = await stack.live_generation(RecordKind.OBSERVATION)
    await rebuild_index.start_reindex(stack.resources, [RecordKind.OBSERVATION])
    await rebuild_index.create_collections(stack.resources)
    assert set(await _search(stack, "marmalade")) == observation_ids
    await stack.process_all()
    await rebuild_index.promote_ready(stack.resources)
    after = await stack.live_generation(RecordKind.OBSERVATION)
    assert after.collection != before.collection
    assert await stack.points(RecordKind.OBSERVATION, after) == {
        (record_id, 1) for record_id in observation_ids
    }
    assert set(await _search(stack, "marmalade")) == observation_ids
