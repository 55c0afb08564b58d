"""Two gateways: one reads working memory for a bound key, the other gives the namespace to somebody else."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from shared.memory.working import queries
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.draining import drain
from workers.sweep import retention

PATH, SECRET = "session/trip/note", "marmalade"
Step = Callable[[], Awaitable[None]]
Read = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


@pytest.fixture
async def other(gateway: Gateway) -> AsyncIterator[Agent]:
    """An agent with an unbound key, at another gateway of the same databases."""
    async with running_gateway(gateway.resources.settings, gateway.tenant) as served:
        yield Agent(served.client, served.tenant)


async def _get(client: httpx.AsyncClient) -> httpx.Response:
    return await client.get(f"/v1/working/{PATH}")


async def _list(client: httpx.AsyncClient) -> httpx.Response:
    return await client.get("/v1/working", params={"prefix": "session"})


async def _list_one(client: httpx.AsyncClient) -> httpx.Response:
    return await client.get("/v1/working", params={"prefix": "session/trip"})


async def _search(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/v1/working/search", json={"query": SECRET})


async def _list_newest(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/v1/working/search", json={})


each_read = pytest.mark.parametrize("read", [_get, _list, _list_one, _search, _list_newest])


def around_reading(
    monkeypatch: pytest.MonkeyPatch, *, before: Step | None = None, after: Step | None = None
) -> None:
    """Do something once, right before or right after a request reads entries from Redis."""
    for name in ("get", "list_entries", "read_many"):
        work = getattr(queries, name)

        async def read(*arguments: Any, work: Callable[..., Awaitable[Any]] = work, **fields: Any) -> Any:
            monkeypatch.undo()
            if before is not None:
                await before()
            result = await work(*arguments, **fields)
            if after is not None:
                await after()
            return result

        monkeypatch.setattr(queries, name, read)
    iterate = queries.iterate_entries

    async def read_all(*arguments: Any) -> AsyncIterator[Any]:
        monkeypatch.undo()
        if before is not None:
            await before()
        entries = [entry async for entry in iterate(*arguments)]
        if after is not None:
            await after()
        for entry in entries:
            yield entry

    monkeypatch.setattr(queries, "iterate_entries", read_all)


def assert_hidden(response: httpx.Response) -> None:
    """Assert that a response shows nothing of the namespace."""
    assert response.status_code in {200, 404}, response.text
    assert SECRET not in response.text
    assert response.status_code == 404 or response.json()["results"] == []


@each_read
async def test_what_is_written_to_a_namespace_that_is_opened_meanwhile_is_its_owners(
    gateway: Gateway, other: Agent, monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    """It was nobody's, so it could be read, when the request asked whose it was."""
    await other.put(PATH, f"No {SECRET} is secret yet.")

    async def open_and_write() -> None:
        await other.session(id="trip", user_id="ada")
        await other.put(PATH, f"The jar holds {SECRET}.")

    async with await gateway.new_client(user_id="bob") as client:
        assert (await read(client)).text.count(PATH) == 1, "it is common"
        around_reading(monkeypatch, before=open_and_write)
        assert_hidden(await read(client))


@each_read
async def test_what_was_read_before_its_session_was_deleted_and_its_owner_forgotten_is_not_shown(
    gateway: Gateway, other: Agent, monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    """A namespace whose owner is forgotten is nobody's, so it can be read."""
    await other.session(id="trip", user_id="ada")
    await other.put(PATH, f"The jar holds {SECRET}.")

    async def delete_and_forget() -> None:
        await other.request("DELETE", "/v1/sessions/trip")
        await drain(gateway.resources)
        assert await retention.forget_empty_namespaces(gateway.resources, gateway.tenant) == 1

    async with await gateway.new_client(user_id="bob") as client:
        assert_hidden(await read(client))
        around_reading(monkeypatch, after=delete_and_forget)
        assert_hidden(await read(client))
