"""DR7: which runs can be undone by whom, and which archived memories are not restored."""

from typing import Any, cast

import pytest

from shared.dreams.runs import undo
from shared.dreams.runs.dream_run import Run, RunState
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.memory.longterm.memory import Memory
from tests.unit.dreams.builders import SCOPE, START, archived_memory, memory, memory_id

NO_TRANSACTION = cast(Transaction, None)


def run(state: RunState) -> Run:
    fields: dict[str, Any] = {"finished_at": START, "undone_at": None, "dry_run": False, "actor": "test"}
    return Run(
        id="r",
        agent_id=SCOPE.agent_id,
        user_id=SCOPE.user_id,
        state=state,
        created_at=START,
        tenant=SCOPE.tenant,
        **fields,
    )


@pytest.mark.parametrize(
    ("state", "user_id", "error"),
    [
        (RunState.DONE, SCOPE.user_id, None),
        (RunState.DONE, "somebody-else", errors.NotFound),
        (RunState.RUNNING, SCOPE.user_id, errors.Conflict),
        (RunState.UNDONE, SCOPE.user_id, errors.Conflict),
        (None, SCOPE.user_id, errors.NotFound),
    ],
)
def test_a_run_of_ones_own_can_be_undone_once_it_has_ended(
    state: RunState | None, user_id: str, error: type[Exception] | None
) -> None:
    caller = Caller("key", SCOPE.tenant, frozenset({"write"}), user_id=user_id)
    found = run(state) if state else None
    if error is None:
        assert undo._require_undoable(caller, found, "r") is found
    else:
        with pytest.raises(error):
            undo._require_undoable(caller, found, "r")


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (None, "it was deleted since"),
        (archived_memory(1).model_copy(update={"version": 2}), "it was changed since"),
        (memory(1), "it was changed since"),
        (archived_memory(1), "what it was merged into was changed since and stays"),
    ],
)
async def test_an_archived_memory_is_restored_only_as_the_run_left_it(
    now: Memory | None, reason: str
) -> None:
    change = {"entry_id": memory_id(1), "version": 1, "action": "archived", "successors": [memory_id(2)]}
    kept = {memory_id(2): "it was changed since"}
    assert await undo._reason_to_keep(NO_TRANSACTION, now, change, kept) == reason
