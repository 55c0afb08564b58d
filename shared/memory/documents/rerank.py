"""Choose the passages that a search returns among its candidates: by a cross-encoder, or by diversity.

A cross-encoder judges better but costs a call. If it is away or answers nonsense, the built-in re-ranker
does its work, and the response says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from shared.foundation import errors
from shared.infra.cross_encoder import CrossEncoder
from shared.memory.documents import diversity
from shared.memory.documents.diversity import ScoredText

STAGE = "rerank"
CROSS_ENCODER = "cross_encoder"
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Reranked:
    """The chosen texts, best first, the stages that ran, and what was unavailable."""

    texts: list[ScoredText]
    stages: list[str]
    degraded: list[str]


async def rerank(
    cross_encoder: CrossEncoder | None, query: str, candidates: Sequence[ScoredText], limit: int
) -> Reranked:
    """Return at most `limit` of the candidates. A cross-encoder's scores take the place of theirs."""
    if cross_encoder is None or not candidates:
        return Reranked(diversity.choose(candidates, limit), [STAGE], [])
    try:
        scores = await cross_encoder.score(query, [candidate.text for candidate in candidates])
    except (errors.Unavailable, errors.InvalidModelReply) as error:
        log.warning("cross_encoder_failed", reason=str(error))
        return Reranked(diversity.choose(candidates, limit), [STAGE], [CROSS_ENCODER])
    scored = [
        ScoredText(candidate.id, candidate.text, score)
        for candidate, score in zip(candidates, scores, strict=True)
    ]
    best = sorted(scored, key=lambda candidate: -candidate.score)[:limit]
    return Reranked(best, [STAGE, CROSS_ENCODER], [])
