"""Ask the configured embedding endpoint, before a stack starts, whether it has the model."""

import asyncio

from shared.foundation import config, errors
from shared.foundation.stages import ReasonCode
from shared.infra.embedder import Embedder, open_embedder

_SECONDS = 10.0
_MAX_NAMES = 10


def refuse_unknown_model(settings: config.Settings) -> None:
    """Raise errors.Misconfigured if the endpoint answers that it has no such model.

    One that does not answer, or is busy, may be started later.
    """
    embedder = open_embedder(settings)
    if embedder is not None:
        asyncio.run(_check(embedder))


async def _check(embedder: Embedder) -> None:
    try:
        async with asyncio.timeout(_SECONDS):
            await _ask(embedder)
    except (errors.Unavailable, TimeoutError):
        return
    finally:
        await embedder.close()


async def _ask(embedder: Embedder) -> None:
    try:
        await embedder.check()
    except errors.ModelRefused as refusal:
        if refusal.reason_code is not ReasonCode.MODEL_UNKNOWN:
            raise
        names = await embedder.list_models()
        listed = f"it lists {', '.join(names[:_MAX_NAMES])}" if names else "it lists none"
        message = f"LOCI_EMBEDDING_MODEL: the endpoint has no model '{embedder.identity.model}'; {listed}"
        raise errors.Misconfigured(message) from refusal
