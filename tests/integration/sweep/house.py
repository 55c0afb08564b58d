"""A gateway with a database and collections of its own, and ways to look at and into what it keeps."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import text

from shared.foundation.stages import RecordKind
from shared.platform.resources import Resources
from shared.search.index import generations, points
from shared.search.index.generations import Generation
from shared.search.index.points import IndexDocument
from tests.conftest import Gateway
from tests.draining import drain, make_due
from workers.sweep import sweep
from workers.sweep.sweep import Counts


@dataclass(frozen=True)
class TestStack:
    """Everything of one tenant in a fleet of its own."""

    gateway: Gateway
    before: dict[str, float] = field(default_factory=dict)

    @property
    def client(self) -> httpx.AsyncClient:
        """A client with all rights."""
        return self.gateway.client

    @property
    def resources(self) -> Resources:
        """What the gateway works with."""
        return self.gateway.resources

    @property
    def tenant(self) -> str:
        """The tenant of the client."""
        return self.gateway.tenant

    async def save(self, content: str, **fields: Any) -> str:
        """Save a memory and return its id."""
        answer = await self.client.post("/v1/memories", json={"content": content} | fields)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def open(self, **fields: Any) -> str:
        """Open a session and return its id."""
        answer = await self.client.post("/v1/sessions", json=fields)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def say(self, session: str, content: str, **fields: Any) -> None:
        """Report a turn."""
        body = {"role": "user", "content": content} | fields
        answer = await self.client.post(f"/v1/sessions/{session}/turns", json=body)
        assert answer.status_code == 201, answer.text

    async def lay(self, key: str, value: str, ttl: int = 600) -> None:
        """Put something on the desk."""
        answer = await self.client.put(f"/v1/working/{key}", json={"value": value, "ttl_seconds": ttl})
        assert answer.status_code == 200, answer.text

    async def status_of(self, path: str) -> int:
        """Return how a GET is answered."""
        return (await self.client.get(path)).status_code

    async def found(self, query: str) -> list[str]:
        """Return the ids that a search finds in a healthy index."""
        answer = (await self.client.post("/v1/memories/search", json={"query": query})).json()
        assert answer["degraded"] == []
        return [one["id"] for one in answer["results"]]

    async def sql(self, statement: str, **values: Any) -> list[Any]:
        """Run a statement on the tenant's rows and return what it returns."""
        async with self.resources.postgres.for_tenant(self.tenant) as connection:
            result = await connection.execute(text(statement), values)
            return list(result) if result.returns_rows else []

    async def backdate(self, table: str, column: str, days: float, **where: Any) -> None:
        """Move a time of some rows into the past."""
        wanted = " AND ".join(f"{name} = :{name}" for name in where)
        moved = f"UPDATE {table} SET {column} = now() - CAST(:age AS interval) WHERE {wanted}"  # noqa: S608
        await self.sql(moved, age=timedelta(days=days), **where)

    async def generations(self, kind: RecordKind = RecordKind.MEMORY) -> list[Generation]:
        """Return the generations of a kind, oldest first."""
        async with self.resources.postgres.across_tenants() as connection:
            return await generations.list_generations(connection, kind)

    async def live(self, kind: RecordKind = RecordKind.MEMORY) -> Generation:
        """Return the generation that is read."""
        return next(one for one in await self.generations(kind) if one.state == "live")

    async def points(
        self, kind: RecordKind = RecordKind.MEMORY, generation: Generation | None = None
    ) -> set[tuple[str, int]]:
        """Return (ref, version) of every point of the tenant of a kind."""
        collection = (generation or await self.live(kind)).collection
        page = await points.scroll(self.resources.qdrant, collection, None, 1000)
        return {(ref, version) for _, owner, ref, version in page.points if owner == self.tenant}

    async def plant(self, kind: RecordKind, ref: str, version: int, **fields: Any) -> None:
        """Write a point that no record asked for."""
        tenant = fields.pop("tenant", self.tenant)
        stray = IndexDocument(tenant, kind, ref, version, "stray words", "stray words", fields)
        await points.upsert_points(self.resources.qdrant, (await self.live(kind)).collection, [stray])

    async def lose(self, kind: RecordKind, refs: Iterable[str]) -> None:
        """Delete points behind our back."""
        collection = (await self.live(kind)).collection
        for ref in refs:
            await points.remove(self.resources.qdrant, collection, self.tenant, ref)

    async def sweep(self) -> Counts:
        """Sweep once, when nothing is on its way any more."""
        await self.resources.index_writer.close()
        return await sweep.sweep_once(self.resources)

    async def settle(self) -> None:
        """Do everything that is left to do, also what was put off."""
        await self.resources.index_writer.close()
        await make_due(self.resources)
        await drain(self.resources)

    async def repairs(self) -> dict[str, float]:
        """Return what `/metrics` says that sweeps have mended since this house was opened."""
        told = (await self.client.get("/metrics")).text
        lines = [line for line in told.splitlines() if line.startswith("loci_sweep_repairs_total{")]
        totals = {line.split('"')[1]: float(line.rsplit(" ", 1)[1]) for line in lines}
        return {name: total - self.before.get(name, 0) for name, total in totals.items()}
