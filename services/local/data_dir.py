"""The data directory of a stack: who holds it, where its files lie, what its children are told.

`addresses.json` says where this run's own stores are. It outlives a killed stack, so it never
decides which stores are ours: only the environment does (`external`).
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

_FROM_THE_STACK = {"postgres_url", "redis_url", "qdrant_url", "flower_password"}


class DataDir:
    """The files of one stack, as absolute paths below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.addresses = self.root / local_addresses.ADDRESSES_FILE
        self.dev_key = self.root / "dev-key"
        self.flower_password = self.root / "flower-password"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the directory and hold it alone; raise Conflict when another stack does."""
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
        """Stop what a killed stack left in this directory: programs first, then their stores."""
        process_record.stop_leftovers(list((self.root / "run").glob("*.json")))
        process_record.stop_leftovers(list(self.root.glob("*/process.json")))

    def log(self, name: str) -> Path:
        """Return the log of a child, with what it held until now moved aside as `.1`."""
        path = self.root / "logs" / f"{name}.log"
        if path.exists():
            path.replace(path.with_suffix(".log.1"))
        return path

    def record(self, name: str) -> Path:
        """Return the record of a program."""
        return self.root / "run" / f"{name}.json"

    def write_addresses(self, urls: dict[str, str]) -> None:
        """Tell every process of this stack where the stores are (keys as in the settings)."""
        password = private_file.password(self.flower_password)
        private_file.write(self.addresses, json.dumps({**urls, "flower_password": password}, indent=1))


def is_external(setting: str) -> bool:
    """Tell whether the environment names this store (`postgres_url`, …), so that it is not ours."""
    return bool(os.environ.get(f"LOCI_{setting.upper()}"))


def environment(settings: config.Settings, root: Path) -> dict[str, str]:
    """Return the environment for the programs: ours, and every setting that was given another way.

    Without the addresses: those the programs read from the data directory, once it has them.
    """
    names = (settings.model_fields_set - _FROM_THE_STACK) | {"host", "port", "flower_port"}
    values = {f"LOCI_{name.upper()}": _text(getattr(settings, name)) for name in names}
    given = {name: text for name, text in values.items() if text is not None}
    # Nobody balances between gateways here, so the one there is need not go on answering when stopped.
    ours = {"LOCI_GATEWAY_DRAIN": "0"}
    return {**ours, **os.environ, **given, "LOCI_DATA_DIR": str(root), "PYTHONUNBUFFERED": "1"}


def _text(value: Any) -> str | None:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return None if value is None else str(value)
