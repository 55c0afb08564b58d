"""LT23: each change of a memory is a version, and a condition on the version admits one of many writers."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest

from tests.agent import Agent, Json

FAILED = HTTPStatus.PRECONDITION_FAILED


def if_match(version: int) -> dict[str, str]:
    return {"if-match": f'"{version}"'}


async def test_a_memory_is_answered_with_its_version_as_entity_tag(
    keeper: Agent, scope: dict[str, str]
) -> None:
    saved = await keeper.client.post("/v1/memories", json={"content": "x", **scope})
    path = f"/v1/memories/{saved.json()['id']}"
    assert (saved.json()["version"], saved.headers["etag"]) == (1, '"1"')
    changed = await keeper.client.patch(path, json={"importance": 0.9})
    read = await keeper.client.get(path)
    for response in (changed, read):
        assert (response.json()["version"], response.headers["etag"]) == (2, '"2"')


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "y"},
        {"category": "c"},
        {"tags": ["t"]},
        {"metadata": {"k": "v"}},
        {"importance": 0.7},
        {"occurred_at": "2024-01-01T00:00:00Z"},
        {"valid_from": "2024-01-01T00:00:00Z"},
        {"valid_until": "2024-01-01T00:00:00Z"},
        {"expires_at": "2999-01-01T00:00:00Z"},
    ],
)
async def test_every_field_that_can_be_changed_counts_as_a_version(
    keeper: Agent, scope: dict[str, str], fields: Json
) -> None:
    memory = await keeper.save("x", **scope)
    path = f"/v1/memories/{memory['id']}"
    assert (await keeper.request("PATCH", path, json=fields))["version"] == 2
    assert (await keeper.request("PATCH", path, json=fields))["version"] == 2


async def test_an_importance_that_a_save_raises_is_a_version(keeper: Agent, scope: dict[str, str]) -> None:
    memory = await keeper.save("x", **scope)
    assert (await keeper.save("x", **scope))["version"] == 1
    assert (await keeper.save("x", importance=0.8, **scope))["version"] == 2
    path = f"/v1/memories/{memory['id']}"
    await keeper.request("PATCH", path, json={"importance": 0.6}, headers=if_match(1), status=FAILED)


async def test_of_twenty_changes_to_one_version_one_succeeds(keeper: Agent, scope: dict[str, str]) -> None:
    memory = await keeper.save("counter 0", **scope)
    path = f"/v1/memories/{memory['id']}"
    for version in (1, 2):
        # Other values in each round: a change to what the memory holds already succeeds and is no version.
        changes: list[Json] = [{"importance": (10 * version + n) / 100} for n in range(10)]
        changes += [{"content": f"counter {version} {n}"} for n in range(10)]
        responses = await asyncio.gather(
            *(keeper.client.patch(path, json=fields, headers=if_match(version)) for fields in changes)
        )
        assert sorted(response.status_code for response in responses) == [200] + [412] * 19
    assert [item["after"]["version"] for item in await keeper.history(memory["id"])] == [1, 2, 3]


async def test_all_writes_on_a_memory_take_a_condition(keeper: Agent, scope: dict[str, str]) -> None:
    memory = await keeper.save("x", **scope)
    path = f"/v1/memories/{memory['id']}"
    writes: list[tuple[str, str, Any]] = [
        ("PATCH", path, {"importance": 0.9}),
        ("POST", f"{path}/archive", {}),
        ("POST", f"{path}/restore", {}),
        ("POST", f"{path}/revert", {"version": 1}),
        ("POST", f"{path}/enrich", {}),
    ]
    for method, target, body in writes:
        problem = await keeper.request(method, target, json=body, headers=if_match(7), status=FAILED)
        assert "version 1" in problem["detail"]
        await keeper.request(method, target, json=body, headers={"if-match": "1"}, status=422)
    await keeper.request("DELETE", path, headers=if_match(7), status=FAILED)
    assert (await keeper.memory(memory["id"]))["version"] == 1
    assert (await keeper.request("DELETE", path, headers=if_match(1)))["deleted"] is True
    await keeper.request("DELETE", path, headers={"if-match": "*"}, status=FAILED)
