"""Export and import long-term memories and conversations."""

import sys
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from services.commands.resources import with_resources
from shared.foundation.scope import DEFAULT_AGENT, Caller, Scope
from shared.lifecycle.transfer import transfer
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources


def export_memories(tenant: str, agent: str | None, user: str | None, output: Path | None) -> None:
    """Write the memories of a scope as NDJSON to a file, or to standard output."""
    scope = Scope(tenant, agent or DEFAULT_AGENT, user)
    if output is None:
        with_resources(lambda resources: _write_lines(resources, scope, sys.stdout.buffer))
        return
    with output.open("wb") as file:
        with_resources(lambda resources: _write_lines(resources, scope, file))


async def _write_lines(resources: Resources, scope: Scope, file: BinaryIO) -> None:
    async for line in transfer.export(resources, scope):
        file.write(line)


def import_memories(path: Path, tenant: str, agent: str | None, user: str | None, *, restore: bool) -> None:
    """Import a file or folder, and print the report as JSON. The tenant is created if it does not exist."""
    scope = Scope(tenant, agent or DEFAULT_AGENT, user)
    caller = Caller("command-line", tenant, frozenset({"read", "write", "admin"}))
    report = with_resources(lambda resources: _import(resources, caller, scope, path, restore=restore))
    sys.stdout.write(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() + "\n")


async def _import(
    resources: Resources, caller: Caller, scope: Scope, path: Path, *, restore: bool
) -> dict[str, Any]:
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        await auth_queries.add_tenant(connection, scope.tenant)
    return await transfer.import_path(resources, caller, scope, path, restore=restore)
