"""The application's own tenant filter, switched off where no statement can slip past: at the driver.

`shared.infra.postgres.owned_by` builds the filter, and a few statements of text write it out.
All of them reach the driver as `tenant = $n`; there the comparison is replaced by one that always
holds. What still keeps tenants apart is row-level security alone.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

_FILTER = re.compile(r"(?<!\w)(?:\w+\.)?tenant = (\$\d+(?:::\w+)?)")


@dataclass
class Seen:
    """The statements that ran while the filter was off, as they would have run and as they did."""

    unfiltered: dict[str, str] = field(default_factory=dict)


@contextmanager
def switched_off(engine: AsyncEngine) -> Iterator[Seen]:
    """Run every statement of an engine without its tenant filter."""
    seen = Seen()

    def unfilter(
        _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: Any
    ) -> tuple[str, Any]:
        # The parameter stays, or the driver would miss it.
        rewritten = _FILTER.sub(r"\1::text IS NOT NULL", statement)
        if rewritten != statement:
            seen.unfiltered[statement] = rewritten
        return rewritten, parameters

    event.listen(engine.sync_engine, "before_cursor_execute", unfilter, retval=True)
    try:
        yield seen
    finally:
        event.remove(engine.sync_engine, "before_cursor_execute", unfilter)
