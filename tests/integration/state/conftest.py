"""A session to keep things in: once in Postgres, once in Redis, and nothing else differs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.conftest import Gateway

TYPES = ("basic_session", "tmp")


@dataclass(frozen=True)
class Held:
    """A session of one store type, asked over HTTP."""

    gateway: Gateway
    id: str
    type: str

    async def ask(
        self, method: str, path: str = "", body: Any = None, *, status: int = 200, **options: Any
    ) -> httpx.Response:
        """Ask something of the session; fail unless it is answered as expected."""
        if body is not None:
            options["json"] = body
        answer = await self.gateway.client.request(method, f"/v1/sessions/{self.id}{path}", **options)
        assert answer.status_code == status, answer.text
        return answer

    async def read(self, path: str, **options: Any) -> Any:
        """Return what is there."""
        return (await self.ask("GET", path, **options)).json()

    async def set(self, key: str, value: Any) -> Any:
        """Write a key."""
        return (await self.ask("PUT", f"/kv/{key}", {"value": value})).json()

    async def keys(self) -> list[str]:
        """Return the keys, up to a hundred, in their order."""
        return [entry["key"] for entry in (await self.read("/kv?limit=100"))["results"]]

    async def put(self, label: str, kind: str, value: Any, **options: Any) -> str:
        """Write a collection and return its entity tag."""
        index = options.pop("index", False)
        body = {"type": kind, "value": value, "index": index}
        return str((await self.ask("PUT", f"/collections/{label}", body, **options)).headers["etag"])


Opening = Callable[..., Awaitable[Held]]


@pytest.fixture
def open_held() -> Opening:
    """Return what opens a session of a store type in a gateway."""

    async def opened(gateway: Gateway, store_type: str, **fields: Any) -> Held:
        body = {"store_types": [store_type], **fields}
        answer = await gateway.client.post("/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        return Held(gateway, answer.json()["id"], store_type)

    return opened


@pytest.fixture(params=TYPES)
async def held(gateway: Gateway, open_held: Opening, request: pytest.FixtureRequest) -> Held:
    """A session of each store type in turn: what holds for one must hold for the other."""
    return await open_held(gateway, request.param)
