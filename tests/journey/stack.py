"""A stack of real processes on its own data directory, and the `loci` command run against it."""

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
from tests.agent import Agent

# In seconds. A lost wake-up or a delayed job then costs a test about a second and not a minute.
_SHORT_INTERVALS: dict[str, Any] = {
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
class CommandResult:
    """The exit code and output of a command."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class ProcessStack:
    """A running stack."""

    running: Running

    @asynccontextmanager
    async def agent(self, tenant: str | None = None, **options: Any) -> AsyncIterator[Agent]:
        """Yield an agent with a new key. By default the tenant is new and the key has all rights."""
        name = tenant or f"t-{uuid4().hex[:12]}"
        options.setdefault("rights", api_keys.RIGHTS)
        postgres = Postgres(config.load(data_dir=self.running.data_dir))
        try:
            key = await api_keys.issue(postgres, name, **options)
        finally:
            await postgres.close()
        async with self.client(key) as client:
            yield Agent(client, name)

    def client(self, key: str | None = None) -> httpx.AsyncClient:
        """Return an HTTP client with a key, or without one."""
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.AsyncClient(base_url=self.running.url, headers=headers, timeout=30, trust_env=False)

    async def loci(self, *arguments: str, **settings: str) -> CommandResult:
        """Run a `loci` command on the data directory of this stack, as an operator would."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.cli", *arguments),
            env={**os.environ, "LOCI_DATA_DIR": str(self.running.data_dir), **settings},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await process.communicate()
        return CommandResult(process.returncode or 0, stdout.decode(), stderr.decode())

    async def delete_windows(self) -> None:
        """Delete every conversation window in Redis, as an eviction or a loss of Redis would."""
        async with open_redis(config.load(data_dir=self.running.data_dir)) as redis:
            names = [name async for name in redis.scan_iter("loci:window:*")]
            assert await redis.delete(*names) == len(names) > 0

    async def wait_until_persisted(self) -> None:
        """Wait until the append-only file of Redis holds all writes. Only these survive a kill."""
        async with open_redis(config.load(data_dir=self.running.data_dir)) as redis:
            assert (await redis.waitaof(1, 0, 10_000))[0] == 1

    def pid(self, database: str) -> int:
        """Return the process id of a database."""
        return int(json.loads((self.running.data_dir / database / "process.json").read_text())["pid"])


@contextmanager
def run_stack(data_dir: Path, *, without: Container[str] = (), **settings: Any) -> Iterator[ProcessStack]:
    """Run a stack on free ports for the length of a block. Its data is kept.

    `without` names programs that the tests on it don't need, because each costs seconds to start.
    """
    background = tuple(program for program in LOCI.background if program.name not in without)
    stack_settings = config.load(
        data_dir=data_dir,
        port=ports.pick_free_port(),
        flower_port=ports.pick_free_port(),
        **(_SHORT_INTERVALS | settings),
    )
    with Stack(
        stack_settings, commands=replace(LOCI, background=background), say=_ignore
    ).running() as running:
        yield ProcessStack(running)


def _ignore(_line: str) -> None:
    """Drop a line of the stack's output. The tests of the stack itself check it."""
