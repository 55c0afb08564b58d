"""Export and import of whole scopes, as lines."""

from collections.abc import AsyncIterator
from typing import Any

import orjson

from shared.foundation.scope import Caller, Scope
from shared.lifecycle.transfer import export_scope, import_scope, line_kinds
from tests.integration.transfer.conftest import TenantStack

Line = dict[str, Any]


async def import_lines(
    stack: TenantStack,
    *lines: Line,
    scope: Scope | None = None,
    caller: Caller | None = None,
    restore: bool = False,
) -> Line:
    async def chunks() -> AsyncIterator[bytes]:
        for line in lines:
            yield orjson.dumps(line) + b"\n"

    return await import_scope.import_scope(
        stack.resources, caller or stack.caller, scope or stack.scope(), chunks(), restore=restore
    )


async def export_lines(
    stack: TenantStack, scope: Scope | None = None, caller: Caller | None = None
) -> list[Line]:
    lines = export_scope.export_scope(
        stack.resources, caller or stack.caller, scope or stack.scope(), line_kinds.parse_kinds(None)
    )
    return [orjson.loads(line) async for line in lines]
