"""Choose which summaries an import stores: those of turns before the window that their session has here."""

from collections.abc import Sequence

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle.transfer import row_queries
from shared.lifecycle.transfer.row_owners import RowLine

AHEAD = "its session here still replays turns that it has"


async def select_behind_windows(
    tx: Transaction, scope: Scope, lines: Sequence[RowLine]
) -> tuple[list[RowLine], list[int]]:
    """Return the lines of summaries whose turns no context replays, and the numbers of the others.

    Otherwise turns would be in a summary that came before them, and never in the next one.
    """
    session_ids = [line.fields["session_id"] for line in lines]
    sessions = await row_queries.lock_sessions(tx, scope, session_ids)
    starts = {session_id: row["window_start"] for session_id, row in sessions.items()}
    behind = [line for line in lines if line.fields["last_seq"] < starts[line.fields["session_id"]]]
    numbers = {line.number for line in behind}
    return behind, [line.number for line in lines if line.number not in numbers]
