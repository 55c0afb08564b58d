"""Choose the neighbour turns of hits that are read and ranked as well."""

from collections.abc import Sequence

from shared.search.ranking.candidate import Candidate, ScoredCandidate

MAX_HITS_WITH_NEIGHBOURS = 20


def neighbour_keys(
    ranked: Sequence[ScoredCandidate], candidates: Sequence[Candidate]
) -> list[tuple[str, int]]:
    """Return the turn keys (session_id, seq) directly before and after the best hits, without candidates."""
    by_id = {c.id: c for c in candidates}
    candidate_keys = {(c.session_id, c.seq) for c in candidates}
    neighbours: dict[tuple[str, int], None] = {}
    for hit in ranked[:MAX_HITS_WITH_NEIGHBOURS]:
        c = by_id[hit.id]
        if c.session_id is None or c.seq is None:
            continue
        neighbours |= dict.fromkeys((c.session_id, seq) for seq in (c.seq - 1, c.seq + 1))
    return [turn_key for turn_key in neighbours if turn_key not in candidate_keys]
