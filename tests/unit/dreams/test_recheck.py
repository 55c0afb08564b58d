"""FG2: what comes from records that were deleted while the model was asked is dropped."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from shared.conversation.sessions import queries as session_queries
from shared.dreams.runs import recheck
from shared.dreams.runs.outcome import NewMemory, Outcome
from shared.infra.transaction import Transaction
from shared.memory.longterm import queries as memory_queries
from tests.unit.dreams.builders import memory, memory_id

NO_TRANSACTION = cast(Transaction, None)
Delete = Callable[..., None]


@pytest.fixture
def delete(monkeypatch: pytest.MonkeyPatch) -> Delete:
    """Return a function that says which records no longer exist."""

    def delete_records(*deleted: str) -> None:
        async def lock_existing(_tx: Transaction, ids: Sequence[str]) -> set[str]:
            return set(ids) - set(deleted)

        monkeypatch.setattr(session_queries, "lock_existing", lock_existing)
        monkeypatch.setattr(memory_queries, "lock_existing", lock_existing)

    return delete_records


def outcome(**fields: Any) -> Outcome:
    values: dict[str, Any] = {
        "inputs": {"a": 1},
        "proposed": ["text"],
        "rejections": [{"code": "duplicate", "detail": "text"}],
        "creations": [NewMemory({"content": "text"}, (memory(1),))],
        "reviewed": {memory_id(1): 1, memory_id(2): 1},
        "shown_memories": {memory_id(1), memory_id(2)},
        "shown_sessions": {"s", "t"},
    }
    return Outcome(**(values | fields))


async def recheck_of(found: Outcome) -> Outcome:
    return await recheck.without_deleted(NO_TRANSACTION, found)


async def test_an_outcome_stays_as_it_is_if_nothing_was_deleted(delete: Delete) -> None:
    delete()
    found = outcome(turns=[("s", 1)])
    assert await recheck_of(found) is found


@pytest.mark.parametrize("deleted", [memory_id(2), "t"])
async def test_no_text_is_kept_if_one_of_the_records_is_gone(delete: Delete, deleted: str) -> None:
    delete(deleted)
    kept = await recheck_of(outcome())
    assert (kept.inputs, kept.proposed) == ({}, None)
    assert kept.rejections == [{"code": "forgotten"}, {"code": "duplicate"}]
    assert kept.reviewed == {id_: 1 for id_ in (memory_id(1), memory_id(2)) if id_ != deleted}
    assert kept.shown_memories | kept.shown_sessions == {memory_id(1), memory_id(2), "s", "t"} - {deleted}
    assert kept.has_more
    assert len(kept.creations) == 1, "a merge is checked against its own sources"


async def test_nothing_that_turns_taught_is_applied_and_they_stay_unread(delete: Delete) -> None:
    delete("t")
    learned = {"read_signal_ids": ["f"], "occurrences": [{"key": "k"}], "inferred_keys": ["k"]}
    kept = await recheck_of(outcome(turns=[("s", 1)], **learned))
    assert (kept.creations, kept.turns, kept.read_signal_ids) == ([], [], [])
    assert (kept.occurrences, kept.inferred_keys) == ([], [])
