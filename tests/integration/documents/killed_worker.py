"""Process due documents, and end by SIGKILL before the n-th statement, as when the machine takes it away.

The arguments are the settings, pickled and in base64, and n. Exit code 0 means that there are fewer.
"""

import asyncio
import base64
import os
import pickle
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import asyncpg
from sqlalchemy import event

from shared.foundation.stages import PARSE_DOCUMENT, PUBLISH_DOCUMENT
from shared.platform.resources import open_resources
from workers.documents import parsed_text, process, publish
from workers.runtime import drain


async def main() -> None:
    """Claim what is due and work on it, each chunk in a transaction of its own."""
    settings = pickle.loads(base64.b64decode(sys.argv[1]))  # noqa: S301  (from the test itself)
    process.BATCH, parsed_text.BATCH = 1, 2
    async with open_resources(settings) as resources:
        _kill_at(resources.postgres.engine.sync_engine, int(sys.argv[2]))
        await drain.drain(resources, PARSE_DOCUMENT, process.process_batch)
        await drain.drain(resources, PUBLISH_DOCUMENT, publish.publish_batch)


def _kill_at(engine: Any, point: int) -> None:
    remaining = point

    def pass_point(*_: object) -> None:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(engine, "before_cursor_execute", pass_point)
    # Constant statements, BEGIN and COMMIT are sent by the driver itself.
    for name in ("fetch", "fetchrow", "fetchval", "execute", "executemany"):
        setattr(asyncpg.Connection, name, _passing(getattr(asyncpg.Connection, name), pass_point))


def _passing(method: Callable[..., Any], pass_point: Callable[[], None]) -> Callable[..., Any]:
    @wraps(method)
    async def passing(*arguments: Any, **options: Any) -> Any:
        pass_point()
        return await method(*arguments, **options)

    return passing


if __name__ == "__main__":
    asyncio.run(main())
