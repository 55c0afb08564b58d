"""Choose the neighbour turns of hits that are read and ranked as well."""

from collections.abc import Sequence

from shared.search.ranking.candidate import Candidate, ScoredCandidate

MAX_HITS_WITH_NEIGHBOURS = 20


def neighbour_keys(
    ranked: Sequence[ScoredCandidate], candidates: Sequence[Candidate]
) -> list[tuple[str, int]]:
    """Return the turn keys (session_id, seq) directly before and after the best hits, without candidates.

    `ScoredCandidate.position` is the position among `candidates`.
    """
    candidate_keys = {(candidate.session_id, candidate.seq) for candidate in candidates}
    neighbours: dict[tuple[str, int], None] = {}
    for hit in ranked[:MAX_HITS_WITH_NEIGHBOURS]:
        candidate = candidates[hit.position]
        if candidate.session_id is None or candidate.seq is None:
            continue
        neighbours |= dict.fromkeys(
            (candidate.session_id, seq) for seq in (candidate.seq - 1, candidate.seq + 1)
        )
    return [turn_key for turn_key in neighbours if turn_key not in candidate_keys]
