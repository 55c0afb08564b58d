"""Count hits of evidence for the live memories that it became.

Evidence is a note that a worker has rewritten, or a memory that it has merged (`Memory.is_evidence`). It is
no result itself: a hit counts for one of its live successors, which then ranks at least as high as it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import RowMapping

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.longterm import evidence_queries, index_document
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.memory import Memory
from shared.search.index.hits import Hit
from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.ranking.relevance import word_share

MARGIN = 0.15
"""How much better evidence must match a query than its successor to be shown in its place: the share of the
query's words, with the difference of the cosines added where both have one.

Chosen by words on 20 questions about 16 rewritten notes, of which all were decided right with up to 0.15, and
19 with 0.2 to 0.5. Of the 27 others, put aside by a hash of the question before, all are with 0.15, 26 with
0.2 and 25 with 0.3 (`tests/unit/longterm/evidence_cases.py`). What a cosine adds was not measured."""


class Evidence(NamedTuple):
    """The current row of a hit of evidence, and its scores."""

    row: RowMapping
    hit: Hit


class EvidenceCandidate(NamedTuple):
    """The row of a live successor, the candidate of the evidence that counts for it, and whose text it has.

    `is_clearer` tells that the evidence matches the query clearly better than the successor's own text.
    """

    row: RowMapping
    candidate: Candidate
    evidence_id: str
    is_clearer: bool


async def read(tx: Transaction, scope: Scope, filters: MemoryFilters, hits: Sequence[Hit]) -> list[Evidence]:
    """Return those of the hits that are evidence now. A hit of an older version proves nothing."""
    by_version = {(hit.record_id, hit.version): hit for hit in hits}
    if not by_version:
        return []
    ids = [hit.record_id for hit in hits]
    rows = await evidence_queries.list_evidence(tx, scope, filters.sharing_agents, ids)
    pairs = ((row, by_version.get((row["id"], row["version"]))) for row in rows)
    return [Evidence(row, hit) for row, hit in pairs if hit is not None]


def successor_ids(found: Iterable[Evidence]) -> set[str]:
    """Return the ids of all memories that evidence became."""
    return {id_ for evidence in found for id_ in evidence.row["successor_ids"] or ()}


def candidates(
    query: str,
    found: Sequence[Evidence],
    rows: Iterable[RowMapping],
    hits: Iterable[Hit],
) -> list[EvidenceCandidate]:
    """Return a candidate per evidence with a successor among the rows, which match what was searched."""
    rows_by_id = {row["id"]: row for row in rows}
    cosines = {(hit.record_id, hit.version): hit.cosine for hit in hits}
    return [
        _candidate(query, evidence, successors, cosines)
        for evidence in found
        if (successors := _successors(evidence, rows_by_id))
    ]


def collapsed(ranked: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """Return each memory once, at the best of its places."""
    best: dict[str, ScoredCandidate] = {}
    for scored in ranked:
        best.setdefault(scored.id, scored)
    return list(best.values())


def text_of(memory: Memory | None) -> str | None:
    """Return the text of evidence that was read again, unless it has been deleted or restored meanwhile."""
    return memory.content if memory is not None and memory.is_evidence else None


def _successors(evidence: Evidence, rows_by_id: Mapping[str, RowMapping]) -> list[RowMapping]:
    """Return the rows of the successors, of the same agent and user alone."""
    owner = (evidence.row["agent_id"], evidence.row["user_id"])
    found = [rows_by_id[id_] for id_ in evidence.row["successor_ids"] or () if id_ in rows_by_id]
    return [row for row in found if (row["agent_id"], row["user_id"]) == owner]


def _candidate(
    query: str,
    evidence: Evidence,
    successors: Sequence[RowMapping],
    cosines: Mapping[tuple[str, int], float | None],
) -> EvidenceCandidate:
    def match(row: RowMapping) -> tuple[float, float | None]:
        return word_share(query, row["content"]), cosines.get((row["id"], row["version"]))

    def sum_of(row: RowMapping) -> float:
        share, cosine = match(row)
        return share + (cosine or 0.0)

    row = max(successors, key=sum_of)
    share, cosine = match(row)
    gain = word_share(query, evidence.row["content"]) - share
    if cosine is not None and evidence.hit.cosine is not None:
        gain += evidence.hit.cosine - cosine
    return EvidenceCandidate(row, _ranked_as(evidence, row), evidence.row["id"], gain >= MARGIN)


def _ranked_as(evidence: Evidence, row: RowMapping) -> Candidate:
    """Return the candidate of a successor with the text, the times and the scores of its evidence.

    It has no turn key: the evidence is no neighbour of what stands beside it.
    """
    own, text = index_document.candidate(row, evidence.hit.keyword, evidence.hit.cosine), evidence.row
    return own._replace(
        text=index_document.keywords_of_row(text),
        said=text["content"],
        day=text["day"],
        since=text["since"],
        speaker=text["speaker"],
        role=text["role"],
        session_id=None,
        seq=None,
    )
