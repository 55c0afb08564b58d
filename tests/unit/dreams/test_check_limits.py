"""DR3: what is accepted at the very limits, and how much a run may still prune."""

from shared.dreams.verification.check import Snapshot, check
from shared.foundation import validation
from tests.unit.dreams.builders import SCOPE, memory, plan, replacement, snapshot

TEA, GREEN = "User likes tea", "User likes green tea"


def test_a_merge_may_have_as_many_labels_as_fit_in_one_memory() -> None:
    first = memory(1, TEA, tags=[f"a{number}" for number in range(40)])
    second = memory(2, GREEN, tags=[f"b{number}" for number in range(validation.MAX_TAGS - 40)])
    assert len(check(plan(replacement(GREEN, 1, 2)), snapshot(first, second)).merges) == 1
    room = validation.MAX_METADATA_PAIRS - 40
    third = memory(3, TEA, metadata={f"a{number}": "" for number in range(40)})
    fourth = memory(4, GREEN, metadata={f"b{number}": "" for number in range(room)})
    assert len(check(plan(replacement(GREEN, 3, 4)), snapshot(third, fourth)).merges) == 1


def test_the_first_batch_of_a_run_has_the_whole_quota_and_a_used_up_one_is_zero() -> None:
    assert Snapshot(SCOPE, {}, scope_size=10).prune_quota == 2
    assert Snapshot(SCOPE, {}, scope_size=10, pruned_count=7).prune_quota == 0
