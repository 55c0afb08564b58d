"""Run the passes of a run, and end by SIGKILL before the n-th statement or commit (`tests/killing.py`).

An order has "tenant", "run" and "passes".
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import event

from shared.foundation import config
from shared.foundation.stages import DreamPass
from shared.platform.resources import open_resources
from tests import run_pass
from tests.killing import execute_orders


async def work(settings: config.Settings, pass_point: Callable[[], None], order: dict[str, Any]) -> None:
    """Run the passes."""
    async with open_resources(settings) as resources:
        for name in ("before_cursor_execute", "commit"):
            event.listen(resources.postgres.engine.sync_engine, name, pass_point)
        for name in order["passes"]:
            await run_pass.run_pass(resources, order["tenant"], order["run"], DreamPass(name))


if __name__ == "__main__":
    execute_orders(work)
