"""A client of a cross-encoder, which reads a query together with each text and scores how well they fit.

The endpoint speaks `POST /rerank` with {model, query, documents, top_n} and answers
{results: [{index, relevance_score}]}, as Cohere's and Jina's do, and those of vLLM and llama.cpp.
"""

import math
from collections.abc import Sequence
from typing import Any

from shared.foundation import config, errors
from shared.infra.model_endpoint import ModelEndpoint


class CrossEncoder:
    """One model of one endpoint."""

    def __init__(self, endpoint: ModelEndpoint, model: str) -> None:
        self._endpoint = endpoint
        self._model = model

    async def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each text: the higher, the better; they have no common scale.

        Raises errors.Unavailable and errors.InvalidModelReply.
        """
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        return _scores_of(await self._endpoint.post("rerank", body), len(texts))

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()


def _scores_of(reply: dict[str, Any], count: int) -> list[float]:
    scores: dict[int, float] = {}
    for result in reply.get("results") or ():
        try:
            scores[int(result["index"])] = float(result["relevance_score"])
        except (TypeError, KeyError, ValueError) as error:
            raise errors.InvalidModelReply(
                "the cross-encoder's reply has a result without a score"
            ) from error
    if scores.keys() != set(range(count)) or not all(map(math.isfinite, scores.values())):
        raise errors.InvalidModelReply("the cross-encoder's reply does not have one score for each text")
    return [scores[index] for index in range(count)]


def open_cross_encoder(settings: config.Settings) -> CrossEncoder | None:
    """Return a client, or None if no cross-encoder is configured."""
    if settings.rerank_base_url is None:
        return None
    model = config.require_setting(settings.rerank_model, "LOCI_RERANK_MODEL")
    endpoint = ModelEndpoint(
        "the cross-encoder", settings.rerank_base_url, settings.rerank_api_key, settings.rerank_timeout
    )
    return CrossEncoder(endpoint, model)
