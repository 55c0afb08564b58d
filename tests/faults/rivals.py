"""Writers that change the same records at the same time, during faults.

When all is over, each record must be found by a word of its present content, and by none of an older one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

_PAUSE = 0.05
_KEY = "session/rivals/place"
_USER = {"user_id": "rival"}  # apart from the memories that a history counts


@dataclass
class Rivals:
    """Several writers of one memory, one reinforced fact and one key of working memory."""

    client: httpx.AsyncClient
    words: Iterator[int] = field(default_factory=count)
    memory_id: str = ""
    writes: int = 0

    @asynccontextmanager
    async def writing(self, writers: int) -> AsyncIterator[None]:
        """Let `writers` writers of each record write during the block."""
        first = {"content": "The rival stands nowhere yet.", "enrich": False, **_USER}
        self.memory_id = (await self.client.post("/v1/memories", json=first)).json()["id"]
        stop = asyncio.Event()

        async def write(once: Callable[[], Awaitable[httpx.Response]]) -> None:
            while not stop.is_set():
                await self._try(once)

        kinds = (self._change, self._reinforce, self._put)
        working = [asyncio.create_task(write(once)) for once in kinds for _ in range(writers)]
        try:
            yield
        finally:
            stop.set()
            await asyncio.gather(*working)

    async def check(self) -> None:
        """Fail unless every record is found by the word of its present content."""
        memory = (await self.client.get(f"/v1/memories/{self.memory_id}")).json()
        word = memory["content"].split()[-1]
        assert self.memory_id in await self._found("/v1/memories/search", "id", query=word, **_USER), word
        value = (await self.client.get(f"/v1/working/{_KEY}")).json()["value"]
        assert _KEY in await self._found("/v1/working/search", "key", query=value), value
        assert len(await self._found("/v1/memories/search", "id", query="lighthouse", **_USER)) == 1
        assert self.writes > 0

    async def _found(self, path: str, name: str, **query: str) -> list[str]:
        response = await self.client.post(path, json=query)
        assert response.status_code == 200, response.text
        return [result[name] for result in response.json()["results"]]

    async def _change(self) -> httpx.Response:
        content = f"The rival stands at place{next(self.words)}"
        return await self.client.patch(f"/v1/memories/{self.memory_id}", json={"content": content})

    async def _reinforce(self) -> httpx.Response:
        tags = [f"tag{next(self.words) % 20}"]
        body: dict[str, Any] = {"content": "The lighthouse is red.", "tags": tags, "enrich": False, **_USER}
        return await self.client.post("/v1/memories", json=body)

    async def _put(self) -> httpx.Response:
        value = {"value": f"value{next(self.words)}", "ttl_seconds": 3600}
        return await self.client.put(f"/v1/working/{_KEY}", json=value)

    async def _try(self, once: Callable[[], Awaitable[httpx.Response]]) -> None:
        try:
            response = await once()
        except httpx.TransportError:
            response = None
        if response is not None and response.is_success:
            self.writes += 1
            return
        assert response is None or response.status_code in {409, 503}, response.text
        await asyncio.sleep(_PAUSE)
