"""An agent's requests to the gateway, each with the status that the test expects."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar
from uuid import uuid4

import httpx

Json = dict[str, Any]
T = TypeVar("T")
_POLL_SECONDS = 0.05


class Agent:
    """The requests of one key. A response with another status raises AssertionError with its text."""

    def __init__(self, client: httpx.AsyncClient, tenant: str) -> None:
        self.client = client
        self.tenant = tenant

    async def request(self, method: str, path: str, *, status: int = HTTPStatus.OK, **more: Any) -> Any:
        """Send a request and return the JSON of its response."""
        response = await self.client.request(method, path, **more)
        assert response.status_code == status, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()

    async def save(self, content: str, **more: Any) -> Json:
        """Save a memory and return it."""
        body = {"content": content, **more}
        return dict(await self.request("POST", "/v1/memories", json=body, status=HTTPStatus.CREATED))

    async def memory(self, memory_id: str) -> Json:
        """Read a memory."""
        return dict(await self.request("GET", f"/v1/memories/{memory_id}"))

    async def history(self, memory_id: str) -> list[Json]:
        """Read the history of a memory."""
        return list((await self.request("GET", f"/v1/memories/{memory_id}/history"))["results"])

    async def search(self, query: str, **more: Any) -> Json:
        """Search memories, and return the whole response."""
        return dict(await self.request("POST", "/v1/memories/search", json={"query": query, **more}))

    async def search_contents(self, query: str, **more: Any) -> list[str]:
        """Search memories, and return their contents."""
        return [memory["content"] for memory in (await self.search(query, **more))["results"]]

    async def search_turn_contents(self, query: str, **more: Any) -> list[str]:
        """Search turns, and return their contents."""
        response = await self.request("POST", "/v1/turns/search", json={"query": query, **more})
        return [turn["content"] for turn in response["results"]]

    async def session(self, **more: Any) -> str:
        """Open a session and return its id."""
        return str((await self.request("POST", "/v1/sessions", json=more, status=HTTPStatus.CREATED))["id"])

    async def append_turn(self, session: str, content: str, role: str = "assistant") -> int:
        """Append a turn and return its number."""
        body, path = {"role": role, "content": content}, f"/v1/sessions/{session}/turns"
        return int((await self.request("POST", path, json=body, status=HTTPStatus.CREATED))["seq"])

    async def context(
        self, session: str, message: str, *, idempotency_key: str | None = None, **more: Any
    ) -> Json:
        """Build the context of a turn."""
        path = f"/v1/sessions/{session}/context"
        headers = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        return dict(await self.request("POST", path, json={"message": message, **more}, headers=headers))

    async def put(self, key: str, value: str, **more: Any) -> Json:
        """Write a working-memory entry and return it."""
        return dict(await self.request("PUT", f"/v1/working/{key}", json={"value": value, **more}))

    async def list_keys(self, prefix: str) -> list[str]:
        """List working memory under a prefix, and return the keys."""
        listing = await self.request("GET", "/v1/working", params={"prefix": prefix})
        return [entry["key"] for entry in listing["results"]]

    async def wait_until_idle(self, within: float = 30) -> None:
        """Wait until this tenant has no pending job."""
        await wait_until(self._has_no_pending_job, within)

    async def _has_no_pending_job(self) -> bool:
        return not any((await self.request("GET", "/v1/status"))["pending"].values())


async def wait_until(condition: Callable[[], Awaitable[T]], within: float = 20) -> T:
    """Wait until the condition returns a true value, and return it. Fail after `within` seconds."""
    deadline = asyncio.get_running_loop().time() + within
    while not (value := await condition()):
        assert asyncio.get_running_loop().time() < deadline, f"not within {within} s: {condition}"
        await asyncio.sleep(_POLL_SECONDS)
    return value


def find_block(context: Json, kind: str) -> Json | None:
    """Return the block of a kind, or None if the context has none."""
    return next((candidate for candidate in context["blocks"] if candidate["kind"] == kind), None)


def count_occurrences(context: Json, text: str) -> int:
    """Count the occurrences of a text in the messages."""
    return sum(message["content"].count(text) for message in context["messages"])


def recalled_ids(context: Json) -> list[str]:
    """Return the ids of the memories that are injected with this turn."""
    return [memory["id"] for memory in context["recalled"]]


def random_word() -> str:
    """Return a random word that occurs nowhere else."""
    return f"w{uuid4().hex[:10]}"
