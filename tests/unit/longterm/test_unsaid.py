"""LT13: a deleted memory leaves a tombstone if no live one says its text any more."""

from dataclasses import dataclass

import pytest

from shared.memory.longterm.tombstones import select_unsaid


@dataclass(frozen=True)
class Said:
    content: str
    key: str | None = None


@pytest.mark.parametrize(
    ("deleted", "live", "is_said"),
    [
        (Said("Ada likes trains."), Said("ada  LIKES\ntrains."), True),
        (Said("Ada likes trains."), Said("Ada likes trams."), False),
        (Said("Ada likes trains."), Said("Ada likes trains.", "hobby"), False),
        (Said("Ada likes trains.", "hobby"), Said("Ada likes trains."), True),
        (Said("Ada likes trains.", "hobby"), Said("Ada likes trains.", "travel"), True),
        (Said("Ada likes trains.", "hobby"), Said("Ada likes trams.", "hobby"), False),
    ],
)
def test_a_text_that_a_live_memory_says_leaves_no_tombstone(
    deleted: Said, live: Said, *, is_said: bool
) -> None:
    assert select_unsaid([deleted], [live]) == ([] if is_said else [deleted])
    assert select_unsaid([deleted], []) == [deleted]
