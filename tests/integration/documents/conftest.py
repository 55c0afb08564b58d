"""Documents of a gateway. Jobs run in the test's process, which has their files parsed by others."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select

from shared.foundation import config
from shared.foundation.stages import RecordKind
from shared.jobs.table import job
from shared.memory.documents.files.table import document_file
from shared.memory.documents.table import document_chunk, parsed_chunk
from shared.search.index import filters
from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, drop_all_jobs, make_due, running_without_jobs

DOCUMENTS = "/v1/documents"
SEARCH = "/v1/documents/search"
_ROUNDS = 4


@dataclass(frozen=True)
class Library:
    """The documents of one tenant."""

    gateway: Gateway
    agent: Agent

    async def send(
        self,
        content: str | bytes,
        name: str | None = None,
        *,
        client: httpx.AsyncClient | None = None,
        **fields: Any,
    ) -> httpx.Response:
        """Upload a file and return the response. Without a name it is one that only these bytes have."""
        raw = content if isinstance(content, bytes) else content.encode()
        files = {"file": (name or f"notes-{sha256(raw).hexdigest()[:12]}.txt", raw)}
        data = {field: str(value) for field, value in fields.items()}
        return await (client or self.gateway.client).post(DOCUMENTS, files=files, data=data)

    async def upload(self, content: str | bytes, name: str | None = None, **fields: Any) -> Json:
        """Upload a file, and return its document."""
        response = await self.send(content, name, **fields)
        assert response.status_code == HTTPStatus.ACCEPTED, response.text
        return dict(response.json())

    async def process(self) -> None:
        """Do what workers have to do, now and later, until no job is left or they make no progress."""
        for _ in range(_ROUNDS):
            await drain(self.gateway.resources)
            async with self.gateway.resources.postgres.for_tenant(self.gateway.tenant) as tx:
                if not await tx.scalar(select(func.count()).select_from(job)):
                    return
            await make_due(self.gateway.resources)

    async def process_once(self) -> None:
        """Do what workers have to do now."""
        await drain(self.gateway.resources)

    async def make_due(self) -> None:
        """Make due what is claimed or delayed."""
        await make_due(self.gateway.resources)

    async def add(self, content: str | bytes, name: str | None = None, **fields: str) -> Json:
        """Upload a file, let a worker process it, and return its document."""
        uploaded = await self.upload(content, name, **fields)
        await self.process()
        return await self.get(uploaded["id"])

    async def get(self, document_id: str) -> Json:
        """Read a document."""
        return dict(await self.agent.request("GET", f"{DOCUMENTS}/{document_id}"))

    async def search(self, query: str, **fields: Any) -> Json:
        """Search, and return the response."""
        return dict(await self.agent.request("POST", SEARCH, json={"query": query, **fields}))

    async def texts(self, query: str, **fields: Any) -> list[str]:
        """Search, and return the texts of the results."""
        return [result["text"] for result in (await self.search(query, **fields))["results"]]

    async def parsed_chunks(self) -> int:
        """Return how many parsed chunks of the tenant are still to be stored."""
        async with self.gateway.resources.postgres.for_tenant(self.gateway.tenant) as tx:
            return int(await tx.scalar(select(func.count()).select_from(parsed_chunk)) or 0)

    async def rows(self) -> dict[str, int]:
        """Return how many chunks, files and points the tenant has."""
        resources, tenant = self.gateway.resources, self.gateway.tenant
        counts: dict[str, int] = {}
        async with resources.postgres.for_tenant(tenant) as tx:
            for table in (document_chunk, document_file):
                counts[table.name] = int(await tx.scalar(select(func.count()).select_from(table)) or 0)
        generation = await resources.search_index.live(RecordKind.DOCUMENT_CHUNK)
        points = f"collections/{generation.collection}/points/count"
        condition = filters.all_of(filters.tenant_condition(tenant))
        async with resources.qdrant.call_guard():
            found = await resources.qdrant.call("POST", points, {"filter": condition, "exact": True})
        return counts | {"points": int(found["count"])}


@asynccontextmanager
async def opened_library(settings: config.Settings, tenant: str) -> AsyncIterator[Library]:
    """Serve a gateway whose documents a test adds."""
    async with running_without_jobs(settings, tenant) as gateway:
        yield Library(gateway, Agent(gateway.client, tenant))


@pytest.fixture(scope="module")
async def served(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """Serve a gateway without models, with a database and an index of its own."""
    async with running_gateway(make_settings(apart=True, job_backoff=0.01), "first") as gateway:
        yield gateway


@pytest.fixture
async def library(served: Gateway, tenant: str) -> AsyncIterator[Library]:
    """Return the documents of a new tenant."""
    await drop_all_jobs(served.resources)
    async with await served.new_client(tenant) as client:
        yield Library(Gateway(client, served.resources, tenant), Agent(client, tenant))


def paragraphs(word: str, count: int) -> str:
    """Return a text of so many paragraphs, each a chunk of its own, with the word and its number."""
    filler = "All of this stands in the handbook, which everybody reads once a year. " * 12
    return "\n\n".join(f"{word} number{number}. {filler}" for number in range(1, count + 1))
