"""A gateway whose stores are compared around each refused request: nothing may have been stored."""

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
from tests.conftest import Gateway, serving
from tests.state import StateInspector

SESSION = "talk"


@dataclass(frozen=True)
class Door:
    """A gateway to send nonsense to."""

    gateway: Gateway
    eye: StateInspector

    @property
    def client(self) -> httpx.AsyncClient:
        """A client with a key of all rights."""
        return self.gateway.client

    async def send(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """Send a body as JSON in ASCII: so that lone surrogates travel, too."""
        if body is not None:
            options["content"] = json.dumps(body).encode()
            options["headers"] = {"content-type": "application/json"} | options.get("headers", {})
        return await self.client.request(method, path, **options)

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Fail unless the block leaves rows, desks, windows and points as they are."""
        before = await self._state()
        yield
        assert await self._state() == before

    async def _state(self) -> state.State:
        await self.gateway.resources.index_writer.close()
        return await self.eye.of_tenant(self.gateway.tenant)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def door(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Door]:
    settings = make_settings(apart=True)
    async with serving(settings, f"t-{uuid4().hex[:12]}") as gateway, state.watching(settings) as eye:
        await gateway.client.post("/v1/sessions", json={"id": SESSION})
        yield Door(gateway, eye)
