"""MO2: one text that an embedding model refuses ends its own job alone; a refused key pauses the stage."""

from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config
from tests.conftest import running_gateway
from tests.integration.sweep.stack import TestStack
from tests.standins.behaviours import NotANumber, Status, Vectors
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour, Call, Wire

MARK = "marmalade"


class RefusesMark:
    """An embedding model that fails for texts with the mark, of `max_chars` or more characters."""

    def __init__(self, failure: Behaviour, max_chars: int = 0) -> None:
        self.failure = failure
        self.max_chars = max_chars

    def play(self, call: Call, wire: Wire) -> None:
        """Embed the texts, or fail."""
        is_refused = any(MARK in text and len(text) >= self.max_chars for text in call.texts)
        (self.failure if is_refused else Vectors()).play(call, wire)


@pytest.fixture
async def stack(
    make_settings: Callable[..., config.Settings], database: dict[str, str], tenant: str, models: ModelServer
) -> AsyncIterator[TestStack]:
    settings = make_settings(
        **database, embedding_base_url=models.url, embedding_model="m", embedding_dimension=64
    )
    async with running_gateway(settings, tenant) as gateway:
        yield TestStack(gateway)


async def embed_jobs(stack: TestStack) -> list[tuple[int, bool]]:
    """Return (attempts, dead) of the jobs that are left."""
    rows = await stack.sql("SELECT attempts, dead_at IS NOT NULL FROM job WHERE stage = 'embed'")
    return [(attempts, dead) for attempts, dead in rows]


@pytest.mark.parametrize("failure", [Status(400), NotANumber()])
async def test_a_text_that_is_refused_ends_only_its_own_job(
    stack: TestStack, models: ModelServer, failure: Behaviour
) -> None:
    models.embedding_default = RefusesMark(failure)
    for text in ("bitter lemons", f"orange {MARK}", "green tea", "black bread"):
        await stack.save(text)
    await stack.process_all()
    assert await embed_jobs(stack) == [(1, True)]
    status = (await stack.client.get("/v1/status")).json()
    assert (status["dead"]["embedding"], status["pending"]["embedding"]) == (1, 0)


async def test_of_a_text_that_is_too_long_the_beginning_is_embedded(
    stack: TestStack, models: ModelServer
) -> None:
    models.embedding_default = RefusesMark(Status(413), max_chars=100)
    await stack.save(f"{MARK} " + "with toast " * 60)
    await stack.save("green tea")
    await stack.process_all()
    assert await embed_jobs(stack) == []


@pytest.mark.parametrize("failure", [NotANumber(), Status(400)])
async def test_texts_wait_for_a_model_that_can_embed_nothing(
    stack: TestStack, models: ModelServer, failure: Behaviour
) -> None:
    models.embedding_default = failure
    await stack.save("bitter lemons")
    await stack.process_all()
    assert await embed_jobs(stack) == [(0, False)]


async def test_a_refused_key_pauses_the_embedding(stack: TestStack, models: ModelServer) -> None:
    models.embedding_default = Status(401)
    for number in range(3):
        await stack.save(f"lemon {number}")
    for _ in range(3):
        await stack.process_all()
    assert await embed_jobs(stack) == [(0, False)] * 3
    assert len(models.embedding_calls) == 1
    status = (await stack.client.get("/v1/status")).json()
    assert [(row["stage"], row["reason_code"]) for row in status["paused"]] == [("embedding", "key_refused")]
    assert status["pending"]["embedding"] == 3
