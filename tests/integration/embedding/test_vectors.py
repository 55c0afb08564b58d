"""A response of an embedding endpoint is used only if it cannot damage the index."""

from dataclasses import dataclass

import pytest

from shared.foundation import config, errors
from shared.infra.embedder import open_embedder
from tests.standins import behaviours
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour, Call, Wire

TEXTS = ["green tea", "black bread", "bitter lemons"]
INVALID: dict[str, Behaviour] = {
    "more dimensions": behaviours.WrongDimension(),
    "fewer dimensions": behaviours.WrongDimension(-1),
    "not a number": behaviours.NotANumber("NaN"),
    "infinite": behaviours.NotANumber("-Infinity"),
    "null": behaviours.NotANumber(None),
    "zero": behaviours.ZeroVector(),
    "too few": behaviours.WrongCount(-1),
    "too many": behaviours.WrongCount(1),
    "an index twice": behaviours.RepeatedIndex(),
    "another shape": behaviours.WrongShape(),
}
UNAVAILABLE: dict[str, Behaviour] = {
    "a page": behaviours.Garbage(),
    "nothing": behaviours.Garbage(""),
    "500": behaviours.Status(500),
    "429": behaviours.Status(429),
    "silence": behaviours.Hang(),
    "hang-up": behaviours.Drop(),
}


@pytest.mark.parametrize("name", [None, *INVALID, *UNAVAILABLE])
async def test_a_response_is_used_only_if_it_has_a_usable_vector_for_each_text(
    models: ModelServer, name: str | None
) -> None:
    settings = config.load(
        embedding_base_url=models.url, embedding_dimension=models.dimension, embedding_timeout=0.2
    )
    embedder = open_embedder(settings)
    assert embedder is not None
    try:
        if name is None:
            reply = await embedder.embed_batch(TEXTS)
            assert [len(vector) for vector in reply.vectors] == [models.dimension] * len(TEXTS)
            return
        models.embedding_default = (INVALID | UNAVAILABLE)[name]
        with pytest.raises(errors.InvalidModelReply if name in INVALID else errors.Unavailable):
            await embedder.embed_batch(TEXTS)
    finally:
        await embedder.close()


@dataclass
class SlowByText:
    """Take `seconds` for each text."""

    seconds: float

    def play(self, call: Call, wire: Wire) -> None:
        """Wait, then answer."""
        behaviours.Slow(self.seconds * len(call.body["input"]), behaviours.Vectors()).play(call, wire)


async def test_a_batch_that_takes_too_long_is_sent_in_smaller_ones_until_the_endpoint_is_faster(
    models: ModelServer,
) -> None:
    settings = config.load(
        embedding_base_url=models.url,
        embedding_dimension=models.dimension,
        embedding_timeout=1,
        embedding_batch=32,
    )
    embedder = open_embedder(settings)
    assert embedder is not None
    texts = [f"text {number}" for number in range(32)]
    models.embedding_default = slow = SlowByText(0.1)
    try:
        for size in (16, 8):
            with pytest.raises(errors.Unavailable):
                await embedder.embed_batch(texts[: embedder.batch_size])
            assert embedder.batch_size == size
        slow.seconds = 0.0
        await embedder.embed_batch(texts[:3])
        assert embedder.batch_size == 8, "fewer texts than it is asked for say nothing"
        for size in (16, 32, 32):
            await embedder.embed_batch(texts[: embedder.batch_size])
            assert embedder.batch_size == size
    finally:
        await embedder.close()
