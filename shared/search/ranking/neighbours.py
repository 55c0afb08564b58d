"""Which turns around the hits are worth reading and ranking too."""

from collections.abc import Sequence

from shared.search.ranking.candidate import Candidate, ScoredCandidate

MAX_HITS_WITH_NEIGHBOURS = 20


def neighbour_keys(
    ranked: Sequence[ScoredCandidate], candidates: Sequence[Candidate]
) -> list[tuple[str, int]]:
    """Return (session_id, seq) of the turns just before and after the best hits that are not candidates."""
    by_id = {c.id: c for c in candidates}
    known = {(c.session_id, c.seq) for c in candidates}
    around: dict[tuple[str, int], None] = {}
    for hit in ranked[:MAX_HITS_WITH_NEIGHBOURS]:
        c = by_id[hit.id]
        if c.session_id is None or c.seq is None:
            continue
        around |= dict.fromkeys((c.session_id, seq) for seq in (c.seq - 1, c.seq + 1))
    return [place for place in around if place not in known]
