"""Databases that last for all mutants of a copy, and are emptied after each."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import asyncpg
import httpx
import redis

from services.local.postgres import Postgres
from services.local.qdrant import Qdrant
from services.local.redis import Redis
from tests.conftest import Stores, migrate


@dataclass(frozen=True, slots=True)
class Databases:
    """Running databases of the tests."""

    stores: Stores

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator["Databases"]:
        """Start the databases with their data in a folder, and stop them at the end."""
        folder.mkdir(parents=True)
        servers = (
            Postgres(folder / "postgres", durable=False),
            Redis(folder / "redis"),
            Qdrant(folder / "qdrant"),
        )
        try:
            stores = Stores(*(server.start() for server in servers))
            migrate(stores.postgres_url)
            yield cls(stores)
        finally:
            for server in reversed(servers):
                server.stop()

    @property
    def addresses(self) -> str:
        """The addresses as the tests' fixture reads them from the environment."""
        return json.dumps(asdict(self.stores))

    def empty(self) -> None:
        """Remove what a run of the tests has left, all but the migrated database."""
        asyncio.run(_drop_databases(self.stores.postgres_url))
        with redis.Redis.from_url(self.stores.redis_url) as client:
            client.flushall()
        with httpx.Client(base_url=self.stores.qdrant_url, timeout=30) as client:
            for collection in client.get("/collections").json()["result"]["collections"]:
                client.delete(f"/collections/{collection['name']}").raise_for_status()


async def _drop_databases(postgres_url: str) -> None:
    server = await asyncpg.connect(f"{postgres_url.rsplit('/', 1)[0]}/postgres")
    try:
        for row in await server.fetch("SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%'"):
            await server.execute(f'DROP DATABASE "{row["datname"]}" WITH (FORCE)')
    finally:
        await server.close()
