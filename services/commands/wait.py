"""Wait for Postgres, and for the schema that this release needs.

A pod that starts before the migration waits here, in an init container, instead of failing over and
over. A schema newer than this release is good enough: during an upgrade the old release's pods must
still be able to start, and steps only add what the release before them does not mind.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import asyncpg
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from services.commands.migrate import configuration
from shared.foundation import config, errors
from shared.infra.postgres import Postgres, create_engine

_PAUSE = 1.0
_NOT_YET = (errors.Unavailable, DBAPIError, asyncpg.PostgresError, OSError)


def wait_for_schema(within: float) -> None:
    """Return once the schema is at least this release's; raise errors.Unavailable after `within` seconds."""
    asyncio.run(_until(_schema, within))


def wait_for_postgres(within: float) -> None:
    """Return once Postgres answers as the schema's owner; raise errors.Unavailable after `within` seconds."""
    asyncio.run(_until(_owner, within))


async def _until(check: Callable[[config.Settings], Awaitable[None]], within: float) -> None:
    settings, end = config.load(), time.monotonic() + within
    while True:
        try:
            await check(settings)
        except _NOT_YET as error:
            if time.monotonic() + _PAUSE > end:
                reason = str(error) if isinstance(error, errors.Unavailable) else type(error).__name__
                raise errors.Unavailable("postgres", f"not in {within:.0f} seconds: {reason}") from None
            await asyncio.sleep(_PAUSE)
        else:
            return


async def _schema(settings: config.Settings) -> None:
    steps = ScriptDirectory.from_config(configuration())
    postgres = Postgres(settings)
    try:
        async with postgres.autocommit() as connection:
            at = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    finally:
        await postgres.close()
    needed = steps.get_current_head()
    older = {step.revision for step in steps.walk_revisions()} - {needed} | {None}
    if at in older:
        raise errors.Unavailable("the schema", f"it is at {at}, this release needs {needed}")


async def _owner(settings: config.Settings) -> None:
    url = config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")
    engine = create_engine(url, role="", pool_size=1)
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
    finally:
        await engine.dispose()
