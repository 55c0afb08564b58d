"""Run passes in processes that end by SIGKILL at a chosen point, as when the machine takes them away.

A process of its own forks them, so that each starts at once. An order is one line of JSON on standard
input: {"settings": pickled and in base64, "tenant", "run", "passes": […], "point": n}. The process is killed
before its n-th statement or commit, between what is then done and what is not. The response is one line
{"code": exit code}: -9 if it was killed, 0 if it had fewer points.
"""

import asyncio
import base64
import json
import os
import pickle
import signal
import sys
from typing import Any, NoReturn

from sqlalchemy import event

from shared.foundation.stages import DreamPass
from shared.platform.resources import open_resources
from tests import run_pass


def main() -> None:
    """Execute orders until the standard input ends."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _run(json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(status)}) + "\n")
        sys.stdout.flush()


def _run(order: dict[str, Any]) -> NoReturn:
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silence, descriptor)
    asyncio.run(_work(order))
    os._exit(0)


async def _work(order: dict[str, Any]) -> None:
    settings = pickle.loads(base64.b64decode(order["settings"]))  # noqa: S301  (from the test itself)
    async with open_resources(settings) as resources:
        _kill_at(resources.postgres.engine.sync_engine, order["point"])
        for name in order["passes"]:
            await run_pass.run_pass(resources, order["tenant"], order["run"], DreamPass(name))


def _kill_at(engine: Any, point: int) -> None:
    remaining = point

    def pass_point(*_: object) -> None:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(engine, "before_cursor_execute", pass_point)
    event.listen(engine, "commit", pass_point)


if __name__ == "__main__":
    main()
