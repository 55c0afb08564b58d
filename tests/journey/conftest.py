"""Two forked stacks, each started by the first test that uses it: one without and one with stand-in models.

Every test has its own tenant, so that none has to clean up and none sees the records of another. The
stacks have small limits (context window, past turns), so that a test of a few turns reaches them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.agent import Agent
from tests.conftest import Stores
from tests.journey.dreaming import reply_to_passes
from tests.journey.rewriting import SynonymVectors, reply_by_sentence
from tests.journey.stack import ForkedStack, fork_stack
from tests.process_pool import ProcessPool
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

NewAgent = Callable[..., Awaitable[Agent]]


@pytest.fixture(scope="package")
def stack(
    process_pool: ProcessPool, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ForkedStack]:
    """Run a stack without models: keyword search, raw memories, and a context window of four turns."""
    folder = tmp_path_factory.mktemp("stack")
    window = {"context_window_turns": 5, "context_window_step": 1}
    with fork_stack(process_pool, stores, folder, "work", "beat", **window) as running_stack:
        yield running_stack


@pytest.fixture(scope="package")
def model() -> Iterator[ModelServer]:
    """Run the stand-in for the model endpoints of `stack_with_models`."""
    with ModelServer(chat_default=Reply(reply_by_sentence)) as server:
        server.embedding_default = SynonymVectors()
        yield server


@pytest.fixture
def dream_replies(model: ModelServer) -> Iterator[None]:
    """Let the model stand-in reply to dream passes too."""
    model.chat_default = Reply(reply_to_passes(reply_by_sentence))
    yield
    model.chat_default = Reply(reply_by_sentence)


@pytest.fixture(scope="package")
def stack_with_models(
    process_pool: ProcessPool,
    stores: Stores,
    model: ModelServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ForkedStack]:
    """Run a stack with a language model, an embedding model and the block of past turns."""
    settings: dict[str, Any] = {
        "recall_past_turns": 5,
        "llm_base_url": model.url,
        "llm_model": "rewriter",
        "judge_calibration_tokens": 0,  # or it would be asked the labelled questions, too
        "embedding_base_url": model.url,
        "embedding_model": "words",
    }
    folder = tmp_path_factory.mktemp("stack_with_models")
    commands = ("work", "beat", "flower")
    with fork_stack(process_pool, stores, folder, *commands, **settings) as running_stack:
        yield running_stack


@pytest.fixture
async def agent(stack: ForkedStack) -> AsyncIterator[Agent]:
    """Yield an agent with all rights, of a new tenant on the stack without models."""
    async with stack.agent() as tenant_agent:
        yield tenant_agent


@pytest.fixture
async def new_agent(stack: ForkedStack) -> AsyncIterator[NewAgent]:
    """Return a function that makes agents on the stack without models, with the given rights and bindings."""
    async with AsyncExitStack() as exit_stack:

        async def make(tenant: str | None = None, **options: Any) -> Agent:
            return await exit_stack.enter_async_context(stack.agent(tenant, **options))

        yield make


@pytest.fixture
async def agent_with_model(stack_with_models: ForkedStack) -> AsyncIterator[Agent]:
    """Yield an agent with all rights, of a new tenant on the stack with models."""
    async with stack_with_models.agent() as tenant_agent:
        yield tenant_agent
