"""Processes that end by SIGKILL at a chosen point of their work, as when the machine takes them away.

A process of its own forks them, so that each starts at once. An order is one line of JSON on standard input:
{"settings": pickled and in base64, "point": n, and what the work needs}. The process is killed at its n-th
point, between what is then done and what is not. The response is one line {"code": exit code}: -9 if it was
killed, 0 if it had fewer points.
"""

import asyncio
import base64
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from shared.foundation import config

Kill = Callable[..., int]
"""Runs a process with settings until it is killed at a point, and returns its exit code."""
Work = Callable[[config.Settings, Callable[[], None], dict[str, Any]], Coroutine[Any, Any, None]]
"""Gets the settings, what it calls at each of its points, and the order."""


@contextmanager
def killing_process(module: str) -> Iterator[Kill]:
    """Yield a function that runs the work of a module, which calls `execute_orders`."""
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )

    def run(settings: config.Settings, point: int, **order: Any) -> int:
        assert process.stdin is not None
        assert process.stdout is not None
        pickled = base64.b64encode(pickle.dumps(settings)).decode()
        process.stdin.write(json.dumps({"settings": pickled, "point": point, **order}) + "\n")
        process.stdin.flush()
        return int(json.loads(process.stdout.readline())["code"])

    yield run
    process.communicate(timeout=20)


def execute_orders(work: Work) -> None:
    """Execute orders until the standard input ends."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _run(work, json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(status)}) + "\n")
        sys.stdout.flush()


def _run(work: Work, order: dict[str, Any]) -> NoReturn:
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    settings = pickle.loads(base64.b64decode(order["settings"]))  # noqa: S301  (from the test itself)
    asyncio.run(work(settings, _killing_at(order["point"]), order))
    os._exit(0)


def _killing_at(point: int) -> Callable[[], None]:
    remaining = point

    def pass_point(*_: object) -> None:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return pass_point
