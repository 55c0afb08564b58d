"""The requests of this benchmark to the gateway. What is not there yet is read as empty."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar
from uuid import uuid4

import httpx

from benchmarks.truth.data import DialogueTurn, Json

_POLL_SECONDS = 0.1
_MAX_WAIT_SECONDS = 120.0
_PAGE = 100
Result = TypeVar("Result")


class Gateway:
    """A gateway, as one key with all rights sees it."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def send(self, method: str, path: str, **request: Any) -> Any:
        """Return the JSON of an answer. Raises httpx.HTTPStatusError unless its status is 2xx."""
        response = await self._client.request(method, path, **request)
        response.raise_for_status()
        return response.json()

    async def memories(self, user_id: str) -> list[Json]:
        """Return the live memories of a user, also those that no longer hold."""
        return await self._pages("/v1/memories", {"user_id": user_id, "validity": "any"})

    async def proposals(self, user_id: str) -> list[Json]:
        """Return what is held for a user; nothing where the product holds nothing."""
        try:
            return await self._pages("/v1/proposals", {"user_id": user_id})
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:
                raise
            return []

    async def _pages(self, path: str, query: Json) -> list[Json]:
        results: list[Json] = []
        cursor: str | None = None
        while True:
            page = await self.send(
                "GET", path, params=query | {"limit": _PAGE} | ({"cursor": cursor} if cursor else {})
            )
            results += page["results"]
            cursor = page["next_cursor"]
            if cursor is None:
                return results

    async def add_turns(self, user_id: str, session: str, turns: Iterable[DialogueTurn]) -> None:
        """Report the turns of a session, a minute apart, on the days that they have."""
        await self.send("POST", "/v1/sessions", json={"id": session, "user_id": user_id})
        rows = [
            {
                "role": turn.role,
                "content": turn.text,
                "created_at": f"{turn.date}T12:{turn.seq % 60:02}:00Z",
            }
            for turn in turns
        ]
        await self.send("POST", f"/v1/sessions/{session}/turns/batch", json={"turns": rows})

    async def import_memories(self, user_id: str, memories: Iterable[tuple[str, str]]) -> None:
        """Import texts as memories that were saved on these days. Only an import sets that day."""
        lines = [
            {"id": uuid4().hex[:12], "content": text, "created_at": f"{date}T12:00:00Z"}
            for text, date in memories
        ]
        body = "\n".join(map(json.dumps, lines))
        headers, owner = {"content-type": "application/x-ndjson"}, {"user_id": user_id}
        report = await self.send("POST", "/v1/memories/import", content=body, headers=headers, params=owner)
        if report["created"] != len(lines):
            raise SystemExit(f"memories were not imported: {report}")

    async def finished_run(self, started_run: Json) -> Json:
        """Wait until a dream run has ended, and return it."""

        async def finished() -> Json | None:
            run: Json = await self.send("GET", f"/v1/dreams/{started_run['id']}")
            return None if run["state"] == "running" else run

        return await wait_for("a dream run", finished)

    async def settle(self) -> None:
        """Wait until nothing that was saved is pending, or say what still is after two minutes."""
        pending: Json = {}

        async def settled() -> bool | None:
            pending.update((await self.send("GET", "/v1/status"))["pending"])
            return None if any(pending.values()) else True

        try:
            await wait_for("the end of all pending work", settled)
        except TimeoutError:
            sys.stderr.write(
                f"still pending: { {name: count for name, count in pending.items() if count} }\n"
            )

    async def await_calibration(self, seconds: float) -> Json:
        """Wait until the judge is calibrated. Return what the gateway says of it, {} if it says nothing."""
        judge: Json = {}

        async def calibrated() -> bool | None:
            judge.clear()
            judge.update(await self._judge())
            return True if not judge or judge.get("calibrated_at") else None

        try:
            await wait_for("the calibration of the judge", calibrated, seconds)
        except TimeoutError as error:
            sys.stderr.write(f"{error}\n")
        return judge

    async def _judge(self) -> Json:
        try:
            models = (await self.send("GET", "/v1/models"))["models"]
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:
                raise
            return {}
        return next((model for model in models if model["purpose"] == "judge"), {})


async def wait_for(
    what: str, ask: Callable[[], Awaitable[Result | None]], seconds: float = _MAX_WAIT_SECONDS
) -> Result:
    """Ask again and again until the answer is not None. Raises TimeoutError after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = await ask()
        if result is not None:
            return result
        await asyncio.sleep(_POLL_SECONDS)
    raise TimeoutError(f"{what} did not come within {seconds:g} s")
