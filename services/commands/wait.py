"""Wait for Postgres, and for the schema that this release needs.

A pod that starts before the migration waits in an init container instead of failing repeatedly. A
schema that is newer than this release is accepted: during an upgrade, pods of the old release must
still start, and a migration makes only changes that the previous release tolerates.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import asyncpg
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from migrations.earlier_versions import refuse_earlier_schema
from services.commands.migrate import configuration
from shared.foundation import config, errors
from shared.infra.postgres import Postgres, create_engine

_POLL_SECONDS = 1.0
_RETRYABLE_ERRORS = (errors.Unavailable, DBAPIError, asyncpg.PostgresError, OSError)


def wait_for_schema(timeout_seconds: float) -> None:
    """Return once the schema is this release's or newer.

    Raise errors.Unavailable after `timeout_seconds`. Raise errors.Misconfigured at once if an earlier
    development version made the database, because waiting does not help then.
    """
    asyncio.run(_poll(_check_schema, timeout_seconds))


def wait_for_postgres(timeout_seconds: float) -> None:
    """Return once the schema's owner can connect. Raise errors.Unavailable after `timeout_seconds`."""
    asyncio.run(_poll(_check_owner, timeout_seconds))


async def _poll(check: Callable[[config.Settings], Awaitable[None]], timeout_seconds: float) -> None:
    settings, deadline = config.load(), time.monotonic() + timeout_seconds
    while True:
        try:
            await check(settings)
        except _RETRYABLE_ERRORS as error:
            if time.monotonic() + _POLL_SECONDS > deadline:
                reason = str(error) if isinstance(error, errors.Unavailable) else type(error).__name__
                raise errors.Unavailable(
                    "postgres", f"not ready within {timeout_seconds:.0f} seconds: {reason}"
                ) from None
            await asyncio.sleep(_POLL_SECONDS)
        else:
            return


async def _check_schema(settings: config.Settings) -> None:
    migrations = ScriptDirectory.from_config(configuration())
    postgres = Postgres(settings)
    try:
        async with postgres.autocommit() as tx:
            await tx.run_sync(refuse_earlier_schema)
            current_revision = await tx.scalar(text("SELECT version_num FROM alembic_version"))
    finally:
        await postgres.close()
    head = migrations.get_current_head()
    older_revisions = {migration.revision for migration in migrations.walk_revisions()} - {head} | {None}
    if current_revision in older_revisions:
        raise errors.Unavailable("the schema", f"it is at {current_revision}, this release needs {head}")


async def _check_owner(settings: config.Settings) -> None:
    url = config.require_setting(settings.postgres_url, "LOCI_POSTGRES_URL")
    engine = create_engine(url, role="", pool_size=1)
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
    finally:
        await engine.dispose()
