"""Process due documents, and end by SIGKILL before the n-th statement (`tests/killing.py`)."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import asyncpg
from sqlalchemy import event

from shared.foundation import config
from shared.foundation.stages import PARSE_DOCUMENT, PUBLISH_DOCUMENT
from shared.platform.resources import open_resources
from tests.killing import execute_orders
from workers.documents import parsed_text, process, publish
from workers.runtime import drain


async def work(settings: config.Settings, pass_point: Callable[[], None], _: dict[str, Any]) -> None:
    """Claim what is due and work on it, each chunk in a transaction of its own."""
    process.BATCH, parsed_text.BATCH = 1, 2
    async with open_resources(settings) as resources:
        event.listen(resources.postgres.engine.sync_engine, "before_cursor_execute", pass_point)
        # Constant statements, BEGIN and COMMIT are sent by the driver itself.
        for name in ("fetch", "fetchrow", "fetchval", "execute", "executemany"):
            setattr(asyncpg.Connection, name, _passing(getattr(asyncpg.Connection, name), pass_point))
        await drain.drain(resources, PARSE_DOCUMENT, process.process_batch)
        await drain.drain(resources, PUBLISH_DOCUMENT, publish.publish_batch)


def _passing(method: Callable[..., Any], pass_point: Callable[[], None]) -> Callable[..., Any]:
    @wraps(method)
    async def passing(*arguments: Any, **options: Any) -> Any:
        pass_point()
        return await method(*arguments, **options)

    return passing


if __name__ == "__main__":
    execute_orders(work)
