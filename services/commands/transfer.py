"""Export and import long-term memories and conversations."""

import sys
from pathlib import Path
from typing import Any, BinaryIO

from services.commands.output import print_json
from services.commands.resources import command_line_caller, with_resources
from shared.foundation.scope import DEFAULT_AGENT, Caller, Scope
from shared.lifecycle.transfer import transfer
from shared.platform.auth import api_keys
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
    caller = command_line_caller(tenant)
    report = with_resources(lambda resources: _import(resources, caller, scope, path, restore=restore))
    print_json(report)


async def _import(
    resources: Resources, caller: Caller, scope: Scope, path: Path, *, restore: bool
) -> dict[str, Any]:
    await api_keys.ensure_tenant(resources.postgres, scope.tenant)
    return await transfer.import_path(resources, caller, scope, path, restore=restore)
