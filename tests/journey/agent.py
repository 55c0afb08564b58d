"""An agent at the door: every request that a journey makes, each with the status that it expects."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar
from uuid import uuid4

import httpx

Json = dict[str, Any]
T = TypeVar("T")
_PAUSE = 0.05


class Agent:
    """One key, and what an agent says with it. What is refused raises AssertionError with the answer."""

    def __init__(self, client: httpx.AsyncClient, tenant: str) -> None:
        self.client = client
        self.tenant = tenant

    async def ask(self, method: str, path: str, *, status: int = HTTPStatus.OK, **more: Any) -> Any:
        """Send a request and return the answer's JSON."""
        answer = await self.client.request(method, path, **more)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    async def save(self, content: str, **more: Any) -> Json:
        """Save a memory and return the entry."""
        body = {"content": content, **more}
        return dict(await self.ask("POST", "/v1/memories", json=body, status=HTTPStatus.CREATED))

    async def memory(self, memory_id: str) -> Json:
        """Read a memory."""
        return dict(await self.ask("GET", f"/v1/memories/{memory_id}"))

    async def history(self, memory_id: str) -> list[Json]:
        """Read what happened to a memory."""
        return list((await self.ask("GET", f"/v1/memories/{memory_id}/history"))["results"])

    async def search(self, query: str, **more: Any) -> Json:
        """Search memories; return the whole answer."""
        return dict(await self.ask("POST", "/v1/memories/search", json={"query": query, **more}))

    async def found(self, query: str, **more: Any) -> list[str]:
        """Search memories; return the contents."""
        return [one["content"] for one in (await self.search(query, **more))["results"]]

    async def turns_found(self, query: str, **more: Any) -> list[str]:
        """Search turns; return the contents."""
        answer = await self.ask("POST", "/v1/turns/search", json={"query": query, **more})
        return [one["content"] for one in answer["results"]]

    async def session(self, **more: Any) -> str:
        """Open a session and return its id."""
        return str((await self.ask("POST", "/v1/sessions", json=more, status=HTTPStatus.CREATED))["id"])

    async def say(self, session: str, content: str, role: str = "assistant") -> int:
        """Report a turn and return its number."""
        body, path = {"role": role, "content": content}, f"/v1/sessions/{session}/turns"
        return int((await self.ask("POST", path, json=body, status=HTTPStatus.CREATED))["seq"])

    async def context(self, session: str, message: str, **more: Any) -> Json:
        """Ask for the context of a turn."""
        path = f"/v1/sessions/{session}/context"
        headers = {"idempotency-key": more.pop("once")} if "once" in more else {}
        return dict(await self.ask("POST", path, json={"message": message, **more}, headers=headers))

    async def put(self, key: str, value: str, **more: Any) -> Json:
        """Write to a desk and return the entry."""
        return dict(await self.ask("PUT", f"/v1/working/{key}", json={"value": value, **more}))

    async def listed(self, prefix: str) -> list[str]:
        """List a desk; return the keys."""
        found = await self.ask("GET", "/v1/working", params={"prefix": prefix})
        return [one["key"] for one in found["results"]]

    async def settled(self, within: float = 30) -> None:
        """Wait until nothing of this tenant is left to do."""
        await until(self._nothing_pending, within)

    async def _nothing_pending(self) -> bool:
        return not any((await self.ask("GET", "/v1/status"))["pending"].values())


async def until(condition: Callable[[], Awaitable[T]], within: float = 20) -> T:
    """Wait until the condition is met and return what it gave; fail after `within` seconds."""
    deadline = asyncio.get_running_loop().time() + within
    while not (met := await condition()):
        assert asyncio.get_running_loop().time() < deadline, f"not within {within} s: {condition}"
        await asyncio.sleep(_PAUSE)
    return met


def block(context: Json, kind: str) -> Json | None:
    """Return the block of a kind, if the context has one."""
    return next((one for one in context["blocks"] if one["kind"] == kind), None)


def shown(context: Json, text: str) -> int:
    """Count how often a text stands in the messages."""
    return sum(message["content"].count(text) for message in context["messages"])


def recalled(context: Json) -> list[str]:
    """Return the ids of the entries that are new in this turn."""
    return [one["id"] for one in context["recalled"]]


def word() -> str:
    """Return a word that nothing else says."""
    return f"w{uuid4().hex[:10]}"
