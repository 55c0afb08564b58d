"""What of an outcome is applied: nothing that has changed meanwhile, was deleted, or was undone before."""

from typing import Any

import pytest

from shared.dreams.runs import apply
from shared.dreams.runs.applied_changes import AppliedChanges
from shared.dreams.runs.outcome import ArchiveRequest, NewMemory, Outcome
from shared.dreams.runs.present import Present
from shared.dreams.runs.undone_change_queries import UndoneChanges
from shared.dreams.verification.rejection import RejectionCode
from shared.memory.longterm.memory import Memory
from tests.unit.dreams.builders import START, memory, memory_id

FINGERPRINT = "\\x0a0b"


def present(*memories: Memory, **fields: Any) -> Present:
    values: dict[str, Any] = {"deleted_texts": set(), "undone": UndoneChanges(), "ids_by_fingerprint": {}}
    return Present(memories={item.id: item for item in memories}, **(values | fields))


def creation(*sources: Memory, content: str = "text") -> NewMemory:
    return NewMemory({"content": content, "fingerprint": FINGERPRINT}, tuple(sources))


@pytest.mark.parametrize(
    ("now", "is_unchanged"),
    [
        (memory(1), True),
        (memory(1, version=2), False),
        (memory(1, archived_at=START), False),
        (memory(1, version=2, archived_at=START), False),
        (memory(2), False),
    ],
)
def test_a_memory_is_unchanged_if_it_is_live_and_of_the_version_that_was_read(
    now: Memory, *, is_unchanged: bool
) -> None:
    assert present(now).is_unchanged(memory(1)) == is_unchanged


def test_a_creation_is_applied_if_its_sources_are_unchanged() -> None:
    assert apply._skip_reason(creation(memory(1), memory(2)), present(memory(1), memory(2))) is None
    assert apply._skip_reason(creation(), present()) is None


def test_a_creation_is_skipped_that_names_the_sources_that_have_changed() -> None:
    changed = present(memory(1), memory(2, version=2))
    reason = apply._skip_reason(creation(memory(1), memory(2)), changed)
    assert reason == {"code": RejectionCode.CHANGED_MEANWHILE, "ids": [memory_id(2)]}


def test_a_text_that_a_caller_has_deleted_is_skipped() -> None:
    forgotten = present(memory(1), deleted_texts={"text"})
    reason = apply._skip_reason(creation(memory(1)), forgotten)
    assert reason == {"code": RejectionCode.FORGOTTEN, "ids": [memory_id(1)]}
    assert apply._skip_reason(creation(memory(1), content="other"), forgotten) is None


@pytest.mark.parametrize(
    ("group", "third", "is_skipped"),
    [
        ({1, 2}, None, True),
        ({1, 3}, 3, True),
        ({1, 3}, None, False),
        ({1, 4}, 3, False),
    ],
)
def test_a_merge_that_was_undone_is_skipped_also_with_the_memory_that_has_its_text(
    group: set[int], third: int | None, *, is_skipped: bool
) -> None:
    undone = UndoneChanges({"g": {memory_id(number) for number in group}})
    ids = {} if third is None else {b"\x0a\x0b": memory_id(third)}
    now = present(memory(1), memory(2), undone=undone, ids_by_fingerprint=ids)
    reason = apply._skip_reason(creation(memory(1), memory(2)), now)
    expected = {"code": RejectionCode.UNDONE_BEFORE, "ids": [memory_id(1), memory_id(2)]}
    assert reason == (expected if is_skipped else None)


def test_what_is_learned_from_turns_repeats_no_merge() -> None:
    undone = UndoneChanges({"g": {memory_id(3)}})
    now = present(undone=undone, ids_by_fingerprint={b"\x0a\x0b": memory_id(3)})
    assert apply._skip_reason(creation(), now) is None


@pytest.mark.parametrize(
    ("now", "undone_id", "code"),
    [
        (memory(1), 2, None),
        (memory(1, version=2), 2, RejectionCode.CHANGED_MEANWHILE),
        (memory(1), 1, RejectionCode.UNDONE_BEFORE),
    ],
)
def test_an_archiving_is_skipped_of_what_changed_or_was_undone(
    now: Memory, undone_id: int, code: RejectionCode | None
) -> None:
    undone = UndoneChanges(archived_ids={memory_id(undone_id)})
    request = ArchiveRequest(memory(1), "ephemeral")
    assert apply._code_to_keep(request, present(now, undone=undone)) == code


def test_the_versions_that_were_written_count_as_reviewed_only_in_a_consolidation() -> None:
    applied = AppliedChanges(changed_memories={memory_id(2): memory(2, version=3)})
    assert apply._reviewed_versions(Outcome(), applied) == {}
    outcome = Outcome(reviewed={memory_id(1): 1, memory_id(2): 1})
    assert apply._reviewed_versions(outcome, applied) == {memory_id(1): 1, memory_id(2): 3}
