"""What a mined fact joins: the live memory of its text, but for what the same run closes."""

from datetime import UTC, datetime

from shared.dreams.runs import repeated_texts
from shared.dreams.runs.outcome import Closing, NewMemory, Outcome
from shared.foundation.origin import UNKNOWN
from shared.memory.longterm import new_rows
from shared.memory.longterm.fingerprint import fingerprint
from shared.memory.longterm.memory import MemoryDraft
from tests.unit.dreams.builders import memory

THEN, NOW = datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 6, 8, tzinfo=UTC)
KNOWN = memory(1, "User likes tea", occurred_at=THEN)


def creation(content: str = "user  likes TEA") -> NewMemory:
    return NewMemory(new_rows.row_from_draft(MemoryDraft(content=content, occurred_at=NOW), UNKNOWN))


def times_after_joining(outcome: Outcome) -> list[datetime | None]:
    return [item.row["occurred_at"] for item in repeated_texts.joined(outcome, [KNOWN]).creations]


def test_a_fact_with_the_text_of_a_memory_gets_its_time_and_fingerprint() -> None:
    [joined] = repeated_texts.joined(Outcome(creations=[creation()]), [KNOWN]).creations
    assert joined.row["occurred_at"] == THEN
    assert joined.row["fingerprint"] == "\\x" + fingerprint(KNOWN.content, THEN).hex()
    assert times_after_joining(Outcome(creations=[creation("User likes coffee")])) == [NOW]


def test_what_is_right_again_after_a_change_joins_nothing_that_the_change_closes() -> None:
    closing = Closing(KNOWN, "other", NOW)
    assert times_after_joining(Outcome(creations=[creation()], closings=[closing])) == [NOW]


def test_what_a_change_in_the_same_run_closes_joins_nothing() -> None:
    first = creation()
    closed = Closing(memory(2).model_copy(update={"id": first.row["id"]}), "other", NOW)
    assert times_after_joining(Outcome(creations=[first], closings=[closed])) == [NOW]
