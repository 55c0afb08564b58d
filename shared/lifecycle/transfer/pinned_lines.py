"""Choose which lines of pinned texts an import stores: a context may show only so many characters of them."""

from collections.abc import Sequence

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle.transfer import row_queries
from shared.lifecycle.transfer.row_owners import RowLine
from shared.memory.pinned import queries

NO_ROOM = "a context would show too many characters of pinned texts"


async def select_fitting(
    tx: Transaction, scope: Scope, lines: Sequence[RowLine], max_chars: int
) -> tuple[list[RowLine], list[int]]:
    """Lock the agent's pinned texts; return the lines for which contexts have room, in their order.

    Return also the numbers of the others.
    """
    await queries.lock_agent(tx, scope)
    keys = [line.key(scope) for line in lines]
    rows = await row_queries.lock_rows(tx, lines[0].kind, scope, keys)
    lengths = {name: len(row["content"]) for (name,), row in rows.items()}
    room = max_chars - await queries.count_other_characters(tx, scope, *(name for (name,) in keys))
    fitting: list[RowLine] = []
    for line in lines:
        name, length = line.fields["name"], len(line.fields["content"])
        grown_by = length - lengths.get(name, 0)
        if sum(lengths.values()) + grown_by <= room:
            lengths[name] = length
            fitting.append(line)
    numbers = {line.number for line in fitting}
    return fitting, [line.number for line in lines if line.number not in numbers]
