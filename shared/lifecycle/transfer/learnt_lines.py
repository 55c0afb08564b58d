"""Link imported preferences to the memories that they were learnt with, by the ids that these have here.

Without its memory (another kind was not exported, or it was deleted here) a rule stands by itself, because
nobody could ever end what it waits for.
"""

from collections.abc import Sequence

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle.transfer import id_mapping
from shared.lifecycle.transfer.row_owners import RowLine
from shared.memory.longterm import queries as memory_queries


async def link(tx: Transaction, scope: Scope, lines: Sequence[RowLine]) -> list[RowLine]:
    """Return lines of preferences with the ids of their memories in this scope, or with none.

    The memories are locked against deletion until the transaction ends.
    """
    named = {line.fields["memory_id"] for line in lines} - {None}
    if not named:
        return list(lines)
    ids = await id_mapping.map_ids(tx, scope, named)
    existing = await memory_queries.lock_existing(tx, sorted(ids.values()))
    linked = {line_id: memory_id for line_id, memory_id in ids.items() if memory_id in existing}
    return [line.with_fields(memory_id=linked.get(line.fields["memory_id"])) for line in lines]
