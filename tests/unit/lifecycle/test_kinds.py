"""Every kind of record that search can find is known to indexing, and no other."""

from shared.foundation.stages import SEARCHABLE_KINDS
from shared.lifecycle.kinds import KINDS


def test_every_searchable_kind_has_its_entry() -> None:
    assert set(KINDS) == set(SEARCHABLE_KINDS)
