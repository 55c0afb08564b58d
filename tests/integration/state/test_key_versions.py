"""LT23: keys of sessions, agents and scratch stores have versions, which are the condition of a write."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.state.conftest import OpenSession


@pytest.fixture(params=["basic_session", "tmp", "agent", "scratch"])
async def address(gateway: Gateway, open_session: OpenSession, request: pytest.FixtureRequest) -> str:
    """The address of a key that nothing is stored under, of each kind of state store."""
    if request.param == "agent":
        return f"/v1/agents/{uuid4().hex}/kv/plan"
    if request.param == "scratch":
        return f"/v1/stores/{uuid4().hex}/kv/plan"
    return f"/v1/sessions/{(await open_session(gateway, request.param)).id}/kv/plan"


async def _put(
    gateway: Gateway, address: str, value: Any, *, status: int = 200, **conditions: str
) -> httpx.Response:
    headers = {name.replace("_", "-"): text for name, text in conditions.items()}
    response = await gateway.client.put(address, json={"value": value}, headers=headers)
    assert response.status_code == status, response.text
    return response


async def _value(gateway: Gateway, address: str) -> Any:
    return (await gateway.client.get(address)).json()["value"]


async def test_a_key_is_written_only_over_the_version_that_the_writer_names(
    gateway: Gateway, address: str
) -> None:
    first = await _put(gateway, address, 1)
    tag = first.headers["etag"]
    assert tag == f'"{first.json()["version"]}"'
    read = await gateway.client.get(address)
    assert (read.headers["etag"], read.json()["version"]) == (tag, first.json()["version"])
    second = await _put(gateway, address, 2, if_match=f'"7", {tag}')
    assert second.json()["version"] > first.json()["version"]
    refused = await _put(gateway, address, 3, status=412, if_match=tag)
    assert str(second.json()["version"]) in problem.parse_problem(refused)["detail"]
    await _put(gateway, address, 3, status=412, if_none_match="*")
    assert await _value(gateway, address) == 2
    await _put(gateway, address, 4, if_match="*")
    await _put(gateway, address, 5)
    assert await _value(gateway, address) == 5


async def test_a_reader_with_the_current_version_gets_not_modified(gateway: Gateway, address: str) -> None:
    tag = (await _put(gateway, address, 1)).headers["etag"]
    unchanged = await gateway.client.get(address, headers={"if-none-match": tag})
    assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", tag)
    await _put(gateway, address, 2)
    assert (await gateway.client.get(address, headers={"if-none-match": tag})).json()["value"] == 2


async def test_a_deleted_key_never_has_an_old_version_again(gateway: Gateway, address: str) -> None:
    for condition in ({"if-match": '"7"'}, {"if-match": "*"}):
        assert (await gateway.client.delete(address, headers=condition)).status_code == 412
        await _put(gateway, address, 1, status=412, if_match=condition["if-match"])
    assert (await gateway.client.get(address)).status_code == 404
    tag = (await _put(gateway, address, 1, if_none_match="*")).headers["etag"]
    for condition in ({"if-match": '"7"'}, {"if-none-match": "*"}):
        assert (await gateway.client.delete(address, headers=condition)).status_code == 412
    deleted = await gateway.client.delete(address, headers={"if-match": tag})
    assert deleted.json() == {"key": "plan", "deleted": True}
    await _put(gateway, address, 2, status=412, if_match=tag)
    await _put(gateway, address, 2)
    await _put(gateway, address, 3, status=412, if_match=tag)
    assert (await gateway.client.delete(address, headers={"if-match": tag})).status_code == 412
    assert await _value(gateway, address) == 2


async def test_writers_at_once_who_compare_lose_no_change(gateway: Gateway, address: str) -> None:
    created = await asyncio.gather(*(_create(gateway, address) for _ in range(8)))
    assert sorted(created) == [200, *[412] * 7]

    async def add_one() -> None:
        while True:
            current = await gateway.client.get(address)
            condition = {"if-match": current.headers["etag"]}
            body = {"value": current.json()["value"] + 1}
            response = await gateway.client.put(address, json=body, headers=condition)
            if response.status_code == 200:
                return
            assert response.status_code == 412, response.text

    await asyncio.gather(*(add_one() for _ in range(8)))
    assert await _value(gateway, address) == 8


async def _create(gateway: Gateway, address: str) -> int:
    response = await gateway.client.put(address, json={"value": 0}, headers={"if-none-match": "*"})
    return response.status_code


async def test_a_malformed_condition_is_refused(gateway: Gateway, address: str) -> None:
    for condition in ({"if-match": "12"}, {"if-match": ""}, {"if-none-match": '"1"'}):
        response = await gateway.client.put(address, json={"value": 1}, headers=condition)
        assert problem.parse_problem(response)["errors"][0]["field"].lower() in condition
    assert (await gateway.client.get(address)).status_code == 404
