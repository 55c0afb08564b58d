"""Let a mined fact join the live memory that has its text already, whatever time either of them names.

The model was shown what is near the turns, and not all that a scope knows; a caller may also have saved the
text meanwhile. Memories are compared by text and time, and no two turns have one time, so without this the
same fact would be stored twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import NewMemory, Outcome
from shared.infra.transaction import Transaction
from shared.memory.longterm import new_rows, scope_queries
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import Memory


async def join_repeated(tx: Transaction, run: Run, outcome: Outcome) -> Outcome:
    """Return the outcome with the times of live memories in place of those of creations with their texts."""
    contents = [creation.row["content"] for creation in outcome.creations]
    return joined(outcome, await scope_queries.list_with_texts(tx, run.scope, contents))


def joined(outcome: Outcome, known: Iterable[Memory]) -> Outcome:
    """Return the outcome with the times of these memories in place of those of creations with their texts.

    What the outcome itself closes is left as it is, on either side: what was said before a change is not
    what is said after it.
    """
    closed_ids = {closing.memory.id for closing in outcome.closings}
    times = {normalize(memory.content): memory.occurred_at for memory in known if memory.id not in closed_ids}
    creations = [
        creation if creation.row["id"] in closed_ids else _with_known_time(creation, times)
        for creation in outcome.creations
    ]
    return replace(outcome, creations=creations)


def _with_known_time(creation: NewMemory, times: Mapping[str, datetime | None]) -> NewMemory:
    text = normalize(creation.row["content"])
    return replace(creation, row=new_rows.with_time(creation.row, times[text])) if text in times else creation
