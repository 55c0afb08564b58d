"""Start, kill, stop and freeze Loci's processes in a test.

Leases, delays and the intervals of beat are shortened, so that what takes minutes in production takes
a second here. Nothing else differs from `loci up`.
"""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from services.local import http_probe, ports
from shared.foundation import config
from shared.infra.postgres import Postgres
from shared.platform.auth import api_keys
from tests.process_pool import ProcessPool, Program

QUICK: dict[str, Any] = {
    "job_lease": 3,
    "job_backoff": 0.05,
    "job_backoff_max": 1,
    "dispatch_interval": 0.3,
    "sweep_interval": 2,
    "llm_timeout": 1,
    "embedding_timeout": 2,
    "log_level": "WARNING",
    "gateway_processes": 1,  # the metrics of several would be set up before their modules are imported
}
_READY_WITHIN = 30.0


class Fleet:
    """The processes of one test, on one database and one prefix."""

    def __init__(
        self, process_pool: ProcessPool, folder: Path, addresses: Mapping[str, str], **changes: Any
    ) -> None:
        self._process_pool = process_pool
        self._log = folder / "log"
        self._programs: list[Program] = []
        values = {**QUICK, "data_dir": folder, "port": ports.pick_free_port(), **addresses, **changes}
        self._values = {name: value for name, value in values.items() if value is not None}
        self.url = f"http://127.0.0.1:{self._values['port']}"

    @property
    def settings(self) -> config.Settings:
        return config.load(**self._values)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self, role: str, **changes: Any) -> Program:
        """Start a process and return at once."""
        values = {**self._values, **changes}
        settings = {f"LOCI_{name.upper()}": str(value) for name, value in values.items()}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCI_")}
        program = Program(self._process_pool, "services.cli", (role,), environment | settings, self._log)
        self._programs.append(program)
        return program

    def serve(self) -> Program:
        """Start the gateway and wait until it serves."""
        gateway = self.start("serve")
        deadline = time.monotonic() + _READY_WITHIN
        while not http_probe.responds_ok("127.0.0.1", int(self._values["port"]), "/healthz"):
            assert gateway.code is None, self.log[-3000:]
            assert time.monotonic() < deadline, self.log[-3000:]
            time.sleep(0.005)
        return gateway

    async def key(self, tenant: str) -> str:
        postgres = Postgres(self.settings)
        try:
            return await api_keys.issue(postgres, tenant, rights=api_keys.RIGHTS)
        finally:
            await postgres.close()

    async def client(self, tenant: str) -> httpx.AsyncClient:
        """Return a client with a key of all rights for a tenant."""
        headers = {"authorization": f"Bearer {await self.key(tenant)}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=20)

    def stop(self) -> None:
        for program in self._programs:
            program.signal(signal.SIGKILL)
        for program in self._programs:
            program.ended(within=10)
