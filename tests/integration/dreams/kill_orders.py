"""Start the process whose workers are killed, and give it orders (`killed_worker`)."""

import base64
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import Gateway

KilledWorker = Callable[[Gateway, str, int, Sequence[str]], int]
"""Runs the passes of a run in a worker until it is killed at a point, and returns its exit code."""


@contextmanager
def killing_process() -> Iterator[KilledWorker]:
    """Yield a function that runs a worker until it is killed at a point."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.dreams.killed_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )

    def run(gateway: Gateway, run_id: str, point: int, passes: Sequence[str]) -> int:
        assert process.stdin is not None
        assert process.stdout is not None
        settings = base64.b64encode(pickle.dumps(gateway.resources.settings)).decode()
        order = {
            "settings": settings,
            "tenant": gateway.tenant,
            "run": run_id,
            "passes": list(passes),
            "point": point,
        }
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return int(json.loads(process.stdout.readline())["code"])

    yield run
    process.communicate(timeout=20)
