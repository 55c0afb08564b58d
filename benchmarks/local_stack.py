"""The stack that a benchmark runs on: its own, on free ports, in a directory that goes when it ends.

The stores write as in production (Postgres with fsync, Valkey with its append-only file), because a
save that need not reach the disk measures nothing.
"""

import asyncio
import json
import os
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

from services.local import programs
from services.local.stack import Stack
from shared.foundation import config
from shared.infra.postgres import Postgres
from shared.infra.redis import open_redis
from shared.platform.auth import api_keys

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class BenchmarkStack:
    """A running stack: its address, a key of all rights, and the settings its processes have."""

    url: str
    key: str
    settings: config.Settings

    def gateway_seconds(self) -> float:
        """Return the processor time that the gateway has used; 0 where the system does not tell."""
        number = json.loads((self.settings.data_dir / "run" / "gateway.json").read_text())["pid"]
        try:
            told = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            return 0.0
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")

    async def durability(self) -> str:
        """Return what the stores say of how they write."""
        address = config.require_setting(self.settings.postgres_url, "LOCI_POSTGRES_URL")
        postgres = await asyncpg.connect(address)
        version, fsync = await postgres.fetchrow(
            "SELECT current_setting('server_version'), current_setting('fsync')"
        )
        await postgres.close()
        redis = open_redis(self.settings)
        kept = await redis.config_get("append*")
        await redis.aclose()
        return (
            f"Postgres {version} fsync {fsync}, Redis appendonly {kept['appendonly']} {kept['appendfsync']}"
        )

    def key_of(self, tenant: str) -> str:
        """Return a new key of all rights for a tenant."""
        return asyncio.run(_issued(self.settings, tenant))


async def _issued(settings: config.Settings, tenant: str) -> str:
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

    `embedder` is an OpenAI-compatible address, `local` for a `loci serve-embeddings` of its own, or
    None for keywords only. `commands` are those of `loci up`, unless some are to be started otherwise.
    """
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="loci-bench-")))
        address = closing.enter_context(_embeddings()) if embedder == LOCAL else embedder
        wanted: dict[str, Any] = {"data_dir": folder, "port": _free(), "flower_port": _free(), **changes}
        if address:
            wanted |= {"embedding_base_url": address, "embedding_model": _model(address)}
        stack = closing.enter_context(Stack(config.load(**wanted), commands=commands, say=_quiet).running())
        yield BenchmarkStack(stack.url, stack.key, config.load(**wanted))


@contextmanager
def _embeddings() -> Iterator[str]:
    command = [sys.executable, "-m", "services.local.embeddings", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline().split()
            if said[:1] != ["ready"]:
                raise SystemExit("the local embedding server did not start")
            yield said[1]
        finally:
            server.terminate()


def _model(address: str) -> str:
    with urllib.request.urlopen(f"{address.rstrip('/')}/models") as answer:  # noqa: S310
        return str(json.load(answer)["data"][0]["id"])


def _free() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _quiet(line: str) -> None:
    if "did not" in line:
        sys.stderr.write(f"{line}\n")
