"""What of a run can be undone, decided from its changes and the present memories."""

from typing import Any

from shared.dreams.runs import run_diff
from shared.dreams.runs.run_diff import RunDiff
from shared.foundation.stages import MemoryState
from shared.memory.longterm.memory import Memory
from tests.unit.dreams.builders import START, memory, memory_id

A, B, C, FIRST, SECOND = 1, 2, 3, 4, 5


def change(action: str, number: int, version: int, *successors: int, count: int = 1) -> dict[str, Any]:
    return {
        "action": action,
        "entry_id": memory_id(number),
        "version": version,
        "reinforcement_count": count,
        "successors": [memory_id(successor) for successor in successors],
    }


def archived(number: int, version: int, **fields: Any) -> Memory:
    return memory(number, version=version, archived_at=START, state=MemoryState.ARCHIVED, **fields)


CHAIN = RunDiff(
    "run",
    [
        change("created", FIRST, 1),
        change("archived", A, 2, FIRST),
        change("archived", B, 2, FIRST),
        change("created", SECOND, 1, count=3),
        change("archived", FIRST, 2, SECOND),
        change("archived", C, 2, SECOND),
    ],
)


def present(*changed: Memory) -> dict[str, Memory]:
    memories = [
        archived(A, 2),
        archived(B, 2),
        archived(C, 2),
        archived(FIRST, 2),
        memory(SECOND, reinforcement_count=3),
        *changed,
    ]
    return {item.id: item for item in memories}


def test_a_chain_that_nobody_touched_is_removed_and_its_originals_are_known() -> None:
    assert CHAIN.created_to_keep(present()) == {}
    assert CHAIN.sources_of(memory_id(SECOND)) == [memory_id(number) for number in (A, B, C)]
    assert [item["entry_id"] for item in CHAIN.archivings] == [memory_id(number) for number in (A, B, C)]


def test_a_memory_that_was_saved_again_stays_with_everything_that_led_to_it() -> None:
    kept = CHAIN.created_to_keep(present(memory(SECOND, reinforcement_count=4)))
    assert kept == {
        memory_id(SECOND): "it was saved again since",
        memory_id(FIRST): "what it was merged into was changed since and stays",
    }


def test_a_memory_that_was_edited_archived_or_deleted_since_stays_as_it_is() -> None:
    edited = memory(SECOND, reinforcement_count=3, version=2)
    for changed in (edited, archived(SECOND, 2, reinforcement_count=3), archived(SECOND, 1)):
        assert CHAIN.created_to_keep(present(changed))[memory_id(SECOND)] == "it was changed since"
    without = {id_: item for id_, item in present().items() if id_ != memory_id(SECOND)}
    assert CHAIN.created_to_keep(without)[memory_id(SECOND)] == "it was deleted since"


def test_a_memory_that_was_merged_into_a_reinforced_one_is_among_its_sources() -> None:
    diff = RunDiff(
        "run", [change("reinforced", C, 2), change("archived", A, 2, C), change("archived", C, 3, B)]
    )
    assert diff.sources_of(memory_id(B)) == [memory_id(A), memory_id(C)]
    assert [item["entry_id"] for item in diff.reinforcements] == [memory_id(C)]


CHANGED = RunDiff(
    "run",
    [
        change("created", FIRST, 1),
        change("created", SECOND, 1),
        change("closed", A, 2, FIRST),
        change("closed", FIRST, 2, SECOND),
    ],
)


def test_what_the_run_closed_but_did_not_create_is_opened() -> None:
    assert [item["entry_id"] for item in CHANGED.closings] == [memory_id(A)]
    closed = memory(FIRST, version=2)
    memories = {item.id: item for item in (memory(A, version=2), closed, memory(SECOND))}
    assert CHANGED.created_to_keep(memories) == {}
    assert CHANGED.is_untouched(closed)


def test_what_replaced_a_memory_and_was_changed_since_keeps_it_closed() -> None:
    memories = {item.id: item for item in (memory(FIRST, version=2), memory(SECOND, version=2))}
    assert CHANGED.created_to_keep(memories) == {
        memory_id(SECOND): "it was changed since",
        memory_id(FIRST): "what replaced it was changed since and stays",
    }


def test_what_replaced_a_memory_and_was_deleted_since_replaces_it_no_longer() -> None:
    memories = {item.id: item for item in (memory(A, version=2), memory(FIRST, version=2))}
    kept = CHANGED.created_to_keep(memories)
    assert kept == {memory_id(SECOND): "it was deleted since"}
    assert not run_diff.successor_stays(CHANGED.closings[0], kept)


def test_what_a_memory_was_merged_into_and_was_deleted_since_keeps_it_archived() -> None:
    [of_a, *_] = CHAIN.archivings
    assert run_diff.successor_stays(of_a, {memory_id(FIRST): "it was deleted since"})
