"""One stack of real processes on a data directory of its own, and the `loci` command beside it."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Container, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from services.local import ports
from services.local.programs import LOCI
from services.local.stack import Running, Stack
from shared.foundation import config
from shared.infra.postgres import Postgres
from shared.infra.redis import open_redis
from shared.platform.auth import api_keys
from tests.journey.agent import Agent

# Seconds. A ring that is lost, or a row that is put off, costs a moment and not a minute.
_QUICK: dict[str, Any] = {
    "job_lease": 20,
    "llm_timeout": 10,
    "embedding_timeout": 10,
    "job_backoff": 0.2,
    "job_backoff_max": 2,
    "dispatch_interval": 1,
    "sweep_interval": 20,
    "log_level": "WARNING",
}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class TestStack:
    """A running stack."""

    running: Running

    @asynccontextmanager
    async def agent(self, tenant: str | None = None, **bound: Any) -> AsyncIterator[Agent]:
        """Give a new key, of a tenant of its own and with all rights unless told, to an agent."""
        name = tenant or f"t-{uuid4().hex[:12]}"
        bound.setdefault("rights", api_keys.RIGHTS)
        postgres = Postgres(config.load(data_dir=self.running.data_dir))
        try:
            key = await api_keys.issue(postgres, name, **bound)
        finally:
            await postgres.close()
        async with self.client(key) as client:
            yield Agent(client, name)

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        """Return an HTTP client with a key, or without one."""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.AsyncClient(base_url=self.running.url, headers=headers, timeout=30, trust_env=False)

    async def loci(self, *words: str, **settings: str) -> Ended:
        """Run a `loci` command on this stack's data directory, as an operator would."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.cli", *words),
            env={**os.environ, "LOCI_DATA_DIR": str(self.running.data_dir), **settings},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await process.communicate()
        return Ended(process.returncode or 0, stdout.decode(), stderr.decode())

    async def forget_windows(self) -> None:
        """Take every conversation window out of Redis, as an eviction or a loss of it would."""
        async with open_redis(config.load(data_dir=self.running.data_dir)) as redis:
            names = [name async for name in redis.scan_iter("loci:window:*")]
            assert await redis.delete(*names) == len(names) > 0

    async def written(self) -> None:
        """Wait until Redis's append-only file holds all that was written: so far does a desk survive."""
        async with open_redis(config.load(data_dir=self.running.data_dir)) as redis:
            assert (await redis.waitaof(1, 0, 10_000))[0] == 1

    def pid(self, store: str) -> int:
        """Return the process number of a store."""
        return int(json.loads((self.running.data_dir / store / "process.json").read_text())["pid"])


@contextmanager
def standing(data_dir: Path, *, without: Container[str] = (), **settings: Any) -> Iterator[TestStack]:
    """Run a stack on free ports for the length of a block; its data stay.

    `without` names programs that the journeys on it don't need: each costs seconds to start.
    """
    needed = replace(LOCI, background=tuple(one for one in LOCI.background if one.name not in without))
    ours = config.load(
        data_dir=data_dir,
        port=ports.pick_free_port(),
        flower_port=ports.pick_free_port(),
        **(_QUICK | settings),
    )
    with Stack(ours, commands=needed, say=_silent).running() as running:
        yield TestStack(running)


def _silent(_line: str) -> None:
    """Say nothing: what a stack says is tested with the stack."""
