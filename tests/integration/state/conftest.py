"""Sessions with state in Postgres and in Redis. Every test runs on both and must have the same result."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.conftest import Gateway

STORE_TYPES = ("basic_session", "tmp")


@dataclass(frozen=True)
class SessionClient:
    """A session of one store type, used over HTTP."""

    gateway: Gateway
    id: str
    type: str

    async def request(
        self, method: str, path: str = "", body: Any = None, *, status: int = 200, **options: Any
    ) -> httpx.Response:
        """Send a request to a path of the session; fail unless the response has the expected status."""
        if body is not None:
            options["json"] = body
        response = await self.gateway.client.request(method, f"/v1/sessions/{self.id}{path}", **options)
        assert response.status_code == status, response.text
        return response

    async def read(self, path: str, **options: Any) -> Any:
        """Return the JSON at a path of the session."""
        return (await self.request("GET", path, **options)).json()

    async def set(self, key: str, value: Any) -> Any:
        """Write a key."""
        return (await self.request("PUT", f"/kv/{key}", {"value": value})).json()

    async def keys(self) -> list[str]:
        """Return up to a hundred keys in their order."""
        return [entry["key"] for entry in (await self.read("/kv?limit=100"))["results"]]

    async def put(self, label: str, collection_type: str, value: Any, **options: Any) -> str:
        """Write a collection and return its ETag."""
        index = options.pop("index", False)
        body = {"type": collection_type, "value": value, "index": index}
        return str((await self.request("PUT", f"/collections/{label}", body, **options)).headers["etag"])


OpenSession = Callable[..., Awaitable[SessionClient]]


@pytest.fixture
def open_session() -> OpenSession:
    """Return a function that opens a session of a store type."""

    async def open_with_store_type(gateway: Gateway, store_type: str, **fields: Any) -> SessionClient:
        body = {"store_types": [store_type], **fields}
        response = await gateway.client.post("/v1/sessions", json=body)
        assert response.status_code == 201, response.text
        return SessionClient(gateway, response.json()["id"], store_type)

    return open_with_store_type


@pytest.fixture(params=STORE_TYPES)
async def session(
    gateway: Gateway, open_session: OpenSession, request: pytest.FixtureRequest
) -> SessionClient:
    """Open a session of each store type in turn."""
    return await open_session(gateway, request.param)
