"""Run a stack for a benchmark, on free ports and in a directory that is deleted at the end.

The databases write as in production (Postgres with fsync, Valkey with its append-only file), because
saves that do not reach the disk would appear too fast.
"""

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks import process_table
from services.local import programs
from services.local.stack import Stack
from shared.foundation import config
from shared.infra.postgres import Postgres
from shared.infra.redis import open_redis
from shared.platform.auth import api_keys

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class BenchmarkStack:
    """A running stack: its address, a key with all rights, and the settings its processes have."""

    url: str
    key: str
    settings: config.Settings

    def gateway_seconds(self) -> float:
        """Return the processor time that the gateway's processes have used; 0 where there is no /proc."""
        pid = json.loads((self.settings.data_dir / "run" / "gateway.json").read_text())["pid"]
        return sum(process_table.processor_seconds(member)[0] for member in process_table.family(pid))

    async def durability(self) -> str:
        """Return the settings that decide how the databases write to disk."""
        address = config.require_setting(self.settings.postgres_url, "LOCI_POSTGRES_URL")
        postgres = await asyncpg.connect(address)
        version, fsync = await postgres.fetchrow(
            "SELECT current_setting('server_version'), current_setting('fsync')"
        )
        await postgres.close()
        redis = open_redis(self.settings)
        aof = await redis.config_get("append*")
        await redis.aclose()
        return f"Postgres {version} fsync {fsync}, Redis appendonly {aof['appendonly']} {aof['appendfsync']}"

    def key_of(self, tenant: str) -> str:
        """Return a new key with all rights for a tenant."""
        return asyncio.run(_issue_key(self.settings, tenant))


async def _issue_key(settings: config.Settings, tenant: str) -> str:
    postgres = Postgres(settings)
    try:
        return await api_keys.issue(postgres, tenant, rights=api_keys.RIGHTS)
    finally:
        await postgres.close()


@contextmanager
def running(
    embedder: str | None = None, commands: programs.Programs = programs.LOCI, **changes: Any
) -> Iterator[BenchmarkStack]:
    """Run a stack for the length of a block.

    `embedder` is an OpenAI-compatible address, `local` for a new `loci serve-embeddings`, or None
    for keywords only. `commands` are those of `loci up`, unless a benchmark needs others.
    """
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="loci-bench-")))
        address = closing.enter_context(_embeddings()) if embedder == LOCAL else embedder
        values: dict[str, Any] = {
            "data_dir": folder,
            "port": _free_port(),
            "flower_port": _free_port(),
            **changes,
        }
        if address:
            values |= {"embedding_base_url": address, "embedding_model": _model(address)}
        stack = closing.enter_context(Stack(config.load(**values), commands=commands, say=_quiet).running())
        yield BenchmarkStack(stack.url, stack.key, config.load(**values))


@contextmanager
def _embeddings() -> Iterator[str]:
    command = [sys.executable, "-m", "services.local.embeddings", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ready_line = server.stdout.readline().split()
            if ready_line[:1] != ["ready"]:
                raise SystemExit("the local embedding server did not start")
            yield ready_line[1]
        finally:
            server.terminate()


def _model(address: str) -> str:
    with urllib.request.urlopen(f"{address.rstrip('/')}/models") as answer:  # noqa: S310
        return str(json.load(answer)["data"][0]["id"])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _quiet(line: str) -> None:
    if "did not" in line:
        sys.stderr.write(f"{line}\n")
