"""Export and import what an agent or user has: every kind of record, as the API does."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from services.commands.output import print_json
from services.commands.resources import command_line_caller, with_resources
from shared.foundation.scope import DEFAULT_AGENT, Caller, Scope
from shared.lifecycle.transfer import export_scope, import_path, line_kinds
from shared.lifecycle.transfer.row_kind import LineKind
from shared.platform.auth import api_keys
from shared.platform.resources import Resources


def export_records(
    tenant: str, agent: str | None, user: str | None, kinds: str | None, output: Path | None
) -> None:
    """Write the records of a scope as NDJSON to a file, or to standard output."""
    scope, parsed_kinds = Scope(tenant, agent or DEFAULT_AGENT, user), line_kinds.parse_kinds(kinds)
    if output is None:
        with_resources(lambda resources: _write_lines(resources, scope, parsed_kinds, sys.stdout.buffer))
        return
    with output.open("wb") as file:
        with_resources(lambda resources: _write_lines(resources, scope, parsed_kinds, file))


async def _write_lines(resources: Resources, scope: Scope, kinds: Sequence[LineKind], file: BinaryIO) -> None:
    caller = command_line_caller(scope.tenant)
    async for line in export_scope.export_scope(resources, caller, scope, kinds):
        file.write(line)


def import_records(path: Path, tenant: str, agent: str | None, user: str | None, *, restore: bool) -> None:
    """Import a file or folder, and print the report as JSON. The tenant is created if it does not exist."""
    scope = Scope(tenant, agent or DEFAULT_AGENT, user)
    caller = command_line_caller(tenant)
    report = with_resources(lambda resources: _import(resources, caller, scope, path, restore=restore))
    print_json(report)


async def _import(
    resources: Resources, caller: Caller, scope: Scope, path: Path, *, restore: bool
) -> dict[str, Any]:
    await api_keys.ensure_tenant(resources.postgres, scope.tenant)
    return await import_path.import_path(resources, caller, scope, path, restore=restore)
