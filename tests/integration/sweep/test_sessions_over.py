"""SE9, SE10: what a session holds ends with it, and the index keeps to what there is of observations."""

from typing import Any

import pytest

from shared.foundation.stages import RecordKind
from shared.lifecycle.reindex import rebuild as rebuild_index
from tests.integration.sweep.house import TestStack


async def _observe(house: TestStack, session: str, content: str) -> str:
    body = {"kind": "fact", "content": content}
    answer = await house.client.post(f"/v1/sessions/{session}/observations", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def _found(house: TestStack, query: str) -> list[str]:
    answer = (await house.client.post("/v1/observations/search", json={"query": query})).json()
    assert answer["degraded"] == []
    return [one["id"] for one in answer["results"]]


async def test_an_expired_session_is_not_found_at_once_and_its_observations_go_with_the_sweep(
    house: TestStack,
) -> None:
    over, later = await house.open(ttl_seconds=60), await house.open(ttl_seconds=60)
    for session in (over, later):
        await house.say(session, "marmalade")
    await _observe(house, over, "marmalade")
    kept = await _observe(house, later, "marmalade")
    await house.backdate("session", "expires_at", 0.001, id=over)
    for path in ("", "/turns", "/observations"):
        assert await house.status_of(f"/v1/sessions/{over}{path}") == 404
        assert await house.status_of(f"/v1/sessions/{later}{path}") == 200
    turn = {"role": "user", "content": "too late"}
    assert (await house.client.post(f"/v1/sessions/{over}/turns", json=turn)).status_code == 404
    assert await _found(house, "marmalade") == [kept]
    turns = (await house.client.post("/v1/turns/search", json={"query": "marmalade"})).json()["results"]
    assert [one["session_id"] for one in turns] == [later]
    assert (await house.sweep()).expired_sessions == 1
    assert await house.sql("SELECT id FROM observation") == [(kept,)]
    assert await house.points(RecordKind.OBSERVATION) == {(kept, 1)}
    assert await _found(house, "marmalade") == [kept]


@pytest.mark.parametrize("store_type", ["basic_session", "tmp"])
async def test_an_expired_session_takes_its_keys_transcript_collections_and_window_along(
    house: TestStack, store_type: str
) -> None:
    """SE9. An id that is used again finds nothing of what was."""
    held = {"kv/k": {"value": "marmalade"}, "collections/c": {"type": "list", "value": ["marmalade"]}}
    opened: dict[str, Any] = {"id": f"again-{store_type}", "ttl_seconds": 3600, "store_types": [store_type]}
    over = await house.open(**opened)
    path = f"/v1/sessions/{over}"
    for place, body in held.items():
        assert (await house.client.put(f"{path}/{place}", json=body)).status_code == 200
    said = {"role": "user", "content": "marmalade"}
    for place in ("transcript", "turns"):
        assert (await house.client.post(f"{path}/{place}", json=said)).status_code == 201
    await house.backdate("session", "expires_at", 0.001, id=over)
    places = [*held, "kv", "collections", "transcript", "turns", "files"]
    assert [await house.status_of(f"{path}/{place}") for place in places] == [404] * len(places)
    again = await house.client.post("/v1/sessions", json=opened)
    assert (again.status_code, "is over" in again.json()["detail"]) == (409, True)
    assert int(again.headers["retry-after"]) >= 1
    assert (await house.sweep()).expired_sessions == 1
    for table in ("store", "store_key", "store_entry", "store_collection", "turn"):
        assert await house.sql(f"SELECT 1 FROM {table}") == [], table  # noqa: S608
    assert [key async for key in house.resources.redis.scan_iter(match=f"*{house.tenant}*{over}*")] == []
    await house.open(**opened)
    for place in ("kv", "collections", "transcript", "turns"):
        assert (await house.client.get(f"{path}/{place}")).json()["results"] == []


async def test_points_without_an_observation_leave_and_observations_without_a_point_are_written_again(
    house: TestStack,
) -> None:
    """IX5."""
    session = await house.open()
    one, other = await _observe(house, session, "marmalade"), await _observe(house, session, "marmalade jar")
    await house.resources.index_writer.close()
    await house.plant(RecordKind.OBSERVATION, "nobody", 1)
    await house.plant(RecordKind.OBSERVATION, one, 2)
    assert (await house.sweep()).orphan_points == 2
    assert await house.points(RecordKind.OBSERVATION) == {(one, 1), (other, 1)}
    await house.lose(RecordKind.OBSERVATION, [one])
    assert await _found(house, "marmalade") == [other]
    assert (await house.sweep()).missing_points == 1
    await house.settle()
    assert await house.points(RecordKind.OBSERVATION) == {(one, 1), (other, 1)}


async def test_a_reindex_rebuilds_observations_and_loses_none(house: TestStack) -> None:
    """IX2."""
    session = await house.open()
    observed = {await _observe(house, session, f"marmalade {n}") for n in range(3)}
    before = await house.live(RecordKind.OBSERVATION)
    await rebuild_index.start_reindex(house.resources, [RecordKind.OBSERVATION])
    await rebuild_index.create_collections(house.resources)
    assert set(await _found(house, "marmalade")) == observed
    await house.settle()
    await rebuild_index.promote_ready(house.resources)
    after = await house.live(RecordKind.OBSERVATION)
    assert after.collection != before.collection
    assert await house.points(RecordKind.OBSERVATION, after) == {(one, 1) for one in observed}
    assert set(await _found(house, "marmalade")) == observed
