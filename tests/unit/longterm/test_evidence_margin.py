"""The margin from which on the text of evidence is shown, on both halves of its cases."""

import hashlib

import pytest

from shared.memory.longterm.evidence import MARGIN
from shared.search.ranking.relevance import word_share
from tests.unit.longterm.evidence_cases import CASES, Case


def is_tuned(case: Case) -> bool:
    """Tell whether the margin was chosen on this case. The others were put aside."""
    return hashlib.sha256(case.question.encode()).digest()[0] % 2 == 0


@pytest.mark.parametrize(("tuned", "count"), [(True, 20), (False, 27)])
def test_the_note_is_shown_where_only_it_answers(tuned: bool, count: int) -> None:  # noqa: FBT001
    cases = [case for case in CASES if is_tuned(case) is tuned]
    assert len(cases) == count
    for case in cases:
        gain = word_share(case.question, case.note) - word_share(case.question, case.statement)
        assert (gain >= MARGIN) is case.needs_note, case
