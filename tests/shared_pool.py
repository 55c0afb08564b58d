"""One pool of connections for all gateways that tests open on a database that they share.

A new pool connects, and then compiles and prepares every statement anew. That takes longer than most tests.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from shared.foundation import config
from shared.infra.postgres import Postgres
from shared.platform import resources


class SharedPostgres(Postgres):
    """A pool that stays open when a gateway closes it."""

    async def close(self) -> None:
        """Keep the connections for the next gateway."""

    async def end(self) -> None:
        """Close every connection."""
        await super().close()


@asynccontextmanager
async def serving(url: str) -> AsyncIterator[None]:
    """Let whoever opens resources in this loop, with the usual settings, share a pool for this database."""
    loop, usual = asyncio.get_running_loop(), config.load(postgres_url=url)
    pool, open_other = SharedPostgres(usual), vars(resources)["Postgres"]

    def open_pool(settings: config.Settings) -> Postgres:
        names = ("postgres_url", "postgres_role", "postgres_pool_size")
        is_usual = all(getattr(settings, name) == getattr(usual, name) for name in names)
        return pool if is_usual and asyncio.get_running_loop() is loop else open_other(settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "Postgres", open_pool)
        yield
    await pool.end()
