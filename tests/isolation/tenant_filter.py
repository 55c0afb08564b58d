"""Disable the application's own tenant filter at the driver, which every statement passes.

`shared.infra.postgres.tenant_filter` builds the filter, and a few textual statements contain it. All
of them reach the driver as `tenant = $n`; this comparison is replaced by one that is always true. Then
only row-level security keeps tenants apart.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from shared.infra import prepared

_FILTER = re.compile(r"(?<!\w)(?:\w+\.)?tenant = (\$\d+(?:::\w+)?)")


@dataclass
class RewrittenStatements:
    """The statements that ran without the filter: the original text, and the text that ran instead."""

    unfiltered: dict[str, str] = field(default_factory=dict)


@contextmanager
def disabled(engine: AsyncEngine) -> Iterator[RewrittenStatements]:
    """Run every statement of an engine without its tenant filter."""
    statements = RewrittenStatements()

    def unfilter(
        _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: Any
    ) -> tuple[str, Any]:
        # The parameter must stay in the text, because the driver still sends its value.
        rewritten = _FILTER.sub(r"\1::text IS NOT NULL", statement)
        if rewritten != statement:
            statements.unfiltered[statement] = rewritten
        return rewritten, parameters

    async def send_unfiltered(connection: AsyncConnection, sql: str, arguments: Sequence[Any]) -> list[Any]:
        rewritten, _ = unfilter(None, None, sql, None, None, None)
        return await send(connection, rewritten, arguments)

    send = prepared.send
    event.listen(engine.sync_engine, "before_cursor_execute", unfilter, retval=True)
    prepared.send = send_unfiltered
    try:
        yield statements
    finally:
        prepared.send = send
        event.remove(engine.sync_engine, "before_cursor_execute", unfilter)
