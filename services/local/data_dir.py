"""The data directory of a stack: its lock, the paths of its files, and the environment of its children.

`addresses.json` contains the URLs of the databases that this run has started. It outlives a killed
stack, so it does not decide which databases a stack starts. Only the environment does (`is_external`).
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from services.local import private_file, process_record
from shared.foundation import config, errors, local_addresses

_SET_BY_STACK = {"postgres_url", "redis_url", "qdrant_url", "flower_password"}


class DataDir:
    """The files of one stack, as absolute paths below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.addresses = self.root / local_addresses.ADDRESSES_FILE
        self.dev_key = self.root / "dev-key"
        self.flower_password = self.root / "flower-password"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the directory and lock it for the block; raise Conflict if another stack has locked it."""
        private_file.folder(self.root)
        private_file.folder(self.root / "logs")
        private_file.folder(self.root / "run")
        with (self.root / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise errors.Conflict(
                    f"another `loci up` or `loci demo` uses {self.root}: stop it, or set LOCI_DATA_DIR"
                ) from None
            yield

    def stop_leftovers(self) -> None:
        """Stop the processes that a killed stack left in this directory: first programs, then databases."""
        process_record.stop_leftovers(list((self.root / "run").glob("*.json")))
        process_record.stop_leftovers(list(self.root.glob("*/process.json")))

    def log(self, name: str) -> Path:
        """Return the path of a child's log, and rename the log of the previous run to `.log.1`."""
        path = self.root / "logs" / f"{name}.log"
        if path.exists():
            path.replace(path.with_suffix(".log.1"))
        return path

    def record(self, name: str) -> Path:
        """Return the path of a program's process record."""
        return self.root / "run" / f"{name}.json"

    def write_addresses(self, urls: dict[str, str]) -> None:
        """Write the databases' URLs, under the names of their settings, for every process of this stack."""
        password = private_file.password(self.flower_password)
        private_file.write(self.addresses, json.dumps({**urls, "flower_password": password}, indent=1))


def is_external(setting: str) -> bool:
    """Tell whether the environment sets this URL (`postgres_url`, …), so that the stack starts no server."""
    return bool(os.environ.get(f"LOCI_{setting.upper()}"))


def environment(settings: config.Settings, root: Path) -> dict[str, str]:
    """Return the environment for the programs: this process's, and every setting that was set otherwise.

    The databases' URLs are not part of it. The programs read them from `addresses.json`.
    """
    names = (settings.model_fields_set - _SET_BY_STACK) | {"host", "port", "flower_port"}
    values = {f"LOCI_{name.upper()}": _text(getattr(settings, name)) for name in names}
    settings_set = {name: text for name, text in values.items() if text is not None}
    # There is one gateway and no load balancer, so a gateway that stops need not go on answering.
    defaults = {"LOCI_GATEWAY_DRAIN": "0"}
    if not is_external("qdrant_url"):
        # The local index merges no segments while it serves, so it never misses what was just written.
        defaults["LOCI_SEARCH_RECENT_SECONDS"] = "0"
    return {**defaults, **os.environ, **settings_set, "LOCI_DATA_DIR": str(root), "PYTHONUNBUFFERED": "1"}


def _text(value: Any) -> str | None:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return None if value is None else str(value)
