"""A gateway with its own database and collections, and helpers to read and change what it stores."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import text

from shared.foundation.stages import RecordKind
from shared.infra.qdrant import CollectionNotFound
from shared.platform.resources import Resources
from shared.search.index import generations, points
from shared.search.index.generations import Generation
from shared.search.index.points import IndexDocument
from tests.conftest import Gateway
from tests.draining import process_all
from tests.sql import sql
from workers.sweep import sweep
from workers.sweep.sweep import Counts


@dataclass(frozen=True)
class TestStack:
    """One tenant of an installation with its own database."""

    __test__ = False

    gateway: Gateway
    before: dict[str, float] = field(default_factory=dict)

    @property
    def client(self) -> httpx.AsyncClient:
        """The HTTP client, whose key has all rights."""
        return self.gateway.client

    @property
    def resources(self) -> Resources:
        """The resources of the gateway."""
        return self.gateway.resources

    @property
    def tenant(self) -> str:
        """The tenant of the client."""
        return self.gateway.tenant

    async def save(self, content: str, **fields: Any) -> str:
        """Save a memory and return its id."""
        response = await self.client.post("/v1/memories", json={"content": content} | fields)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    async def open_session(self, **fields: Any) -> str:
        """Open a session and return its id."""
        response = await self.client.post("/v1/sessions", json=fields)
        assert response.status_code == 201, response.text
        return str(response.json()["id"])

    async def add_turn(self, session: str, content: str, **fields: Any) -> None:
        """Append a turn to a session."""
        body = {"role": "user", "content": content} | fields
        response = await self.client.post(f"/v1/sessions/{session}/turns", json=body)
        assert response.status_code == 201, response.text

    async def put_working(self, key: str, value: str, ttl: int = 600) -> None:
        """Write a working-memory entry."""
        response = await self.client.put(f"/v1/working/{key}", json={"value": value, "ttl_seconds": ttl})
        assert response.status_code == 200, response.text

    async def status_of(self, path: str) -> int:
        """Return the status of a GET."""
        return (await self.client.get(path)).status_code

    async def search(self, query: str) -> list[str]:
        """Return the ids of the memories that a search finds, which must not be degraded."""
        response = (await self.client.post("/v1/memories/search", json={"query": query})).json()
        assert response["degraded"] == []
        return [result["id"] for result in response["results"]]

    async def sql(self, statement: str, **values: Any) -> list[Any]:
        """Run a statement on the tenant's rows, and return its rows."""
        return await sql(self.gateway, statement, **values)

    async def backdate(self, table: str, column: str, days: float, **where: Any) -> None:
        """Move a time of some rows into the past."""
        conditions = " AND ".join(f"{name} = :{name}" for name in where)
        statement = f"UPDATE {table} SET {column} = now() - CAST(:age AS interval) WHERE {conditions}"  # noqa: S608
        await self.sql(statement, age=timedelta(days=days), **where)

    async def generations(self, kind: RecordKind = RecordKind.MEMORY) -> list[Generation]:
        """Return the generations of a kind, oldest first."""
        async with self.resources.postgres.across_tenants() as tx:
            return await generations.list_generations(tx, kind)

    async def live_generation(self, kind: RecordKind = RecordKind.MEMORY) -> Generation:
        """Return the live generation of a kind."""
        return next(generation for generation in await self.generations(kind) if generation.state == "live")

    async def points(
        self, kind: RecordKind = RecordKind.MEMORY, generation: Generation | None = None
    ) -> set[tuple[str, int]]:
        """Return (record id, version) of every point of the tenant of a kind."""
        collection = (generation or await self.live_generation(kind)).collection
        page = await points.scroll(self.resources.qdrant, collection, None, 1000)
        return {(record_id, version) for _, owner, record_id, version in page.points if owner == self.tenant}

    async def record_ids(self, kind: RecordKind) -> set[str]:
        """Return the record id of every point of the tenant of a kind."""
        return {record_id for record_id, _ in await self.points(kind)}

    async def add_point(self, kind: RecordKind, record_id: str, version: int, **fields: Any) -> None:
        """Write a point directly, without a record."""
        tenant = fields.pop("tenant", self.tenant)
        document = IndexDocument(
            tenant, kind, record_id, version, "words of no record", "words of no record", fields
        )
        await points.upsert_points(
            self.resources.qdrant, (await self.live_generation(kind)).collection, [document]
        )

    async def delete_points(self, kind: RecordKind, record_ids: Iterable[str]) -> None:
        """Delete points directly in Qdrant."""
        collection = (await self.live_generation(kind)).collection
        versions = dict.fromkeys(record_ids, 2**53)
        await points.remove_deleted(self.resources.qdrant, collection, self.tenant, versions)

    async def sweep(self) -> Counts:
        """Sweep once, after the writer has finished."""
        await self.resources.index_writer.close()
        return await sweep.sweep_once(self.resources)

    async def process_all(self) -> None:
        """Process all jobs, delayed ones included."""
        await process_all(self.resources)

    async def leave(self) -> None:
        """Take the tenant off the list of sweeps, or those of later tests would take ever longer.

        Its points go, too: a sweep compares their number with that of the records of all tenants.
        """
        await self.process_all()  # or a job that is left would write a point anew
        for kind in RecordKind:
            for generation in await self.generations(kind):
                await self._delete_all_points(generation)
        async with self.resources.postgres.across_tenants() as tx:
            # As the owner of the tables, and with keys of the tenant left behind.
            await tx.execute(text("SET LOCAL ROLE NONE"))
            await tx.execute(text("SET LOCAL session_replication_role = replica"))
            await tx.execute(text("DELETE FROM tenant WHERE tenant = :tenant"), {"tenant": self.tenant})

    async def _delete_all_points(self, generation: Generation) -> None:
        qdrant, collection = self.resources.qdrant, generation.collection
        with suppress(CollectionNotFound):
            page = await points.scroll(qdrant, collection, None, 1000)
            if own := [point_id for point_id, owner, _, _ in page.points if owner == self.tenant]:
                await points.remove_ids(qdrant, collection, own)

    async def repairs(self) -> dict[str, float]:
        """Return the repairs in `/metrics` since this stack was opened, by kind."""
        metrics = (await self.client.get("/metrics")).text
        lines = [line for line in metrics.splitlines() if line.startswith("loci_sweep_repairs_total{")]
        totals = {line.split('"')[1]: float(line.rsplit(" ", 1)[1]) for line in lines}
        return {name: total - self.before.get(name, 0) for name, total in totals.items()}
