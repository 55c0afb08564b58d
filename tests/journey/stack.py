"""A stack of real processes on its own data directory, and the `loci` command run against it.

`run_stack` is `loci up`. `fork_stack` forks the same programs, on the databases that all tests share: that
takes a second instead of ten.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Container, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import uuid4

import httpx

from services.local import http_probe, ports
from services.local.data_dir import DataDir, environment
from services.local.programs import LOCI
from services.local.stack import Running, Stack
from shared.foundation import config
from shared.infra.postgres import Postgres
from shared.infra.redis import open_redis
from shared.platform.auth import api_keys
from tests.agent import Agent
from tests.conftest import Stores
from tests.integration.local.conditions import until
from tests.process_pool import ProcessPool, Program
from tests.trusted_judges import trust_judge_of

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
class ProcessStack:
    """A running stack."""

    running: Running

    @property
    def settings(self) -> config.Settings:
        """The settings of a command on this stack."""
        return config.load(data_dir=self.running.data_dir)

    @asynccontextmanager
    async def agent(self, tenant: str | None = None, **options: Any) -> AsyncIterator[Agent]:
        """Yield an agent with a new key. By default the tenant is new and the key has all rights."""
        name = tenant or f"t-{uuid4().hex[:12]}"
        options.setdefault("rights", api_keys.RIGHTS)
        postgres = Postgres(self.settings)
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

    async def wait_until_persisted(self) -> None:
        """Wait until the append-only file of Redis holds all writes. Only these survive a kill."""
        async with open_redis(self.settings) as redis:
            assert (await redis.waitaof(1, 0, 10_000))[0] == 1

    def pid(self, database: str) -> int:
        """Return the process id of a database."""
        return int(json.loads((self.running.data_dir / database / "process.json").read_text())["pid"])


@dataclass(frozen=True)
class ForkedStack(ProcessStack):
    """A running stack on the databases that all tests share."""

    process_pool: ProcessPool
    prefix: str

    @property
    def settings(self) -> config.Settings:
        """The settings of a command on this stack."""
        return config.load(data_dir=self.running.data_dir, prefix=self.prefix)

    async def loci(self, *arguments: str, **variables: str) -> CompletedProcess[str]:
        """Run a `loci` command on the data directory of this stack, as an operator would."""
        named = {"LOCI_DATA_DIR": str(self.running.data_dir), "LOCI_PREFIX": self.prefix}
        return await asyncio.to_thread(self.process_pool.loci, *arguments, **(named | variables))

    async def delete_windows(self) -> None:
        """Delete every conversation window in Redis, as an eviction or a loss of Redis would."""
        async with open_redis(self.settings) as redis:
            names = [name async for name in redis.scan_iter(f"{self.prefix}:window:*")]
            assert await redis.delete(*names) == len(names) > 0


@contextmanager
def run_stack(data_dir: Path, *, without: Container[str] = (), **settings: Any) -> Iterator[ProcessStack]:
    """Run a stack on free ports for the length of a block, as `loci up` does. Its data is kept.

    `without` names programs that the tests on it don't need, because each costs seconds to start.
    """
    background = tuple(program for program in LOCI.background if program.name not in without)
    commands = replace(LOCI, background=background)
    with Stack(_settings(data_dir, settings), commands=commands, say=_ignore).running() as running:
        yield ProcessStack(running)


@contextmanager
def fork_stack(
    process_pool: ProcessPool, stores: Stores, folder: Path, *commands: str, **settings: Any
) -> Iterator[ForkedStack]:
    """Run the gateway and these commands for the length of a block, on a database and a prefix of its own."""
    prefix, postgres_url = f"s{uuid4().hex[:10]}", stores.create_database()
    files = DataDir(folder / "data")
    stack_settings = _settings(files.root, {"gateway_processes": 1, "prefix": prefix, **settings})
    with files.locked(), ExitStack() as programs:
        programs.callback(stores.drop, postgres_url, prefix)
        files.write_addresses(asdict(stores) | {"postgres_url": postgres_url})
        env = environment(stack_settings, files.root)
        prepared = process_pool.loci("migrate", "--dev-key", **env)
        assert prepared.returncode == 0, prepared.stderr
        if "llm_base_url" in settings:
            addresses = asdict(stores) | {"postgres_url": postgres_url}
            trust_judge_of(stack_settings.model_copy(update=addresses))
        for command in ("serve", *commands):
            program = Program(process_pool, "services.cli", (command,), env, files.log(command))
            programs.callback(program.kill)
        until(lambda: http_probe.responds_ok(stack_settings.host, stack_settings.port), within=60)
        yield ForkedStack(_describe(files, stack_settings), process_pool, prefix)


def _settings(data_dir: Path, settings: dict[str, Any]) -> config.Settings:
    free_ports = {"port": ports.pick_free_port(), "flower_port": ports.pick_free_port()}
    return config.load(data_dir=data_dir, **free_ports, **(_SHORT_INTERVALS | settings))


def _describe(files: DataDir, settings: config.Settings) -> Running:
    return Running(
        url=f"http://{settings.host}:{settings.port}",
        key=files.dev_key.read_text().strip(),
        flower_url=f"http://{settings.host}:{settings.flower_port}",
        flower_user=settings.flower_user,
        flower_password_file=files.flower_password,
        data_dir=files.root,
        key_file=files.dev_key,
    )


def _ignore(_line: str) -> None:
    """Drop a line of the stack's output. The tests of the stack itself check it."""
