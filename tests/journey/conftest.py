"""Two stacks, started when the first journey asks for them: one without models, one with stand-ins.

Every journey has a tenant of its own, so none has to clean up and none sees another's rows. What a
stack is told at its start (the window, past turns) is small, so that a journey of a few turns gets
to the end of it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.journey.agent import Agent
from tests.journey.house import TestStack, standing
from tests.journey.rewriting import Understanding, by_sentence
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

NewAgent = Callable[..., Awaitable[Agent]]


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestStack]:
    """A stack without models: keyword search, raw entries; the window replays four turns."""
    data_dir = tmp_path_factory.mktemp("plain") / "data"
    with standing(data_dir, without=["flower"], context_max_turns=4) as house:
        yield house


@pytest.fixture(scope="session")
def model() -> Iterator[ModelServer]:
    """The model endpoints of the stack that has some."""
    with ModelServer(chat_default=Reply(by_sentence)) as server:
        server.embedding_default = Understanding()
        yield server


@pytest.fixture(scope="session")
def modelled(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[TestStack]:
    """A stack with a language model, an embedding model and the block of past turns."""
    models: dict[str, Any] = {
        "llm_base_url": model.url,
        "llm_model": "rewriter",
        "embedding_base_url": model.url,
        "embedding_model": "words",
    }
    with standing(tmp_path_factory.mktemp("modelled") / "data", recall_past_turns=5, **models) as house:
        yield house


@pytest.fixture
async def agent(plain: TestStack) -> AsyncIterator[Agent]:
    """An agent with all rights on a fresh tenant of the stack without models."""
    async with plain.agent() as one:
        yield one


@pytest.fixture
async def another(plain: TestStack) -> AsyncIterator[NewAgent]:
    """Make more agents on the stack without models, with the rights and bounds that are told."""
    async with AsyncExitStack() as closing:

        async def make(tenant: str | None = None, **bound: Any) -> Agent:
            return await closing.enter_async_context(plain.agent(tenant, **bound))

        yield make


@pytest.fixture
async def thinker(modelled: TestStack) -> AsyncIterator[Agent]:
    """An agent with all rights on a fresh tenant of the stack with models."""
    async with modelled.agent() as one:
        yield one
