"""A gateway whose databases are compared before and after refused requests: nothing may be stored."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest_asyncio

from shared.foundation import config
from tests import state
from tests.conftest import Gateway, running_gateway
from tests.state import StateInspector

SESSION = "talk"


@dataclass(frozen=True)
class CheckedGateway:
    """A served gateway, with an inspector of its databases."""

    served: Gateway
    inspector: StateInspector

    @property
    def client(self) -> httpx.AsyncClient:
        """A client whose key has all rights."""
        return self.served.client

    async def send(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Send a body as JSON in ASCII, so that it can contain lone surrogates."""
        if body is not None:
            options["content"] = json.dumps(body).encode()
            options["headers"] = {"content-type": "application/json"} | options.get("headers", {})
        return await self.client.request(method, path, **options)

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Fail unless the block leaves all rows, working memory, windows and points unchanged."""
        before = await self._state()
        yield
        assert await self._state() == before

    async def _state(self) -> state.State:
        await self.served.resources.index_writer.close()
        return await self.inspector.tenant_state(self.served.tenant)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway(make_settings: Callable[..., config.Settings]) -> AsyncIterator[CheckedGateway]:
    settings = make_settings(apart=True)
    async with (
        running_gateway(settings, f"t-{uuid4().hex[:12]}") as served,
        state.watching(settings) as inspector,
    ):
        await served.client.post("/v1/sessions", json={"id": SESSION})
        await served.client.put("/v1/agents/default", json={"mine_common": True})
        await served.client.put(
            f"/v1/working/session/{SESSION}/k", json={"value": "one", "ttl_seconds": 3600}
        )
        yield CheckedGateway(served, inspector)
