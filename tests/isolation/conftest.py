"""One house for all of these tests: a tenant that owns something of everything, and its models."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.foundation import config
from tests import state
from tests.conftest import Gateway, serving
from tests.isolation import by_hand, planted, tenant_filter
from tests.isolation.ids import Ids
from tests.standins.models import ModelServer
from tests.state import State, StateInspector


@dataclass(frozen=True)
class IsolationStack:
    """A served gateway, the ids of what its tenant owns, and all that as it was planted."""

    gateway: Gateway
    ids: Ids
    settings: config.Settings
    eye: StateInspector
    planted: State

    async def state(self) -> State:
        """Return what the stores hold of the owner now."""
        await self.gateway.resources.index_writer.close()
        return await self.eye.of_tenant(self.gateway.tenant)

    def stranger(self) -> str:
        """Return the name of a tenant that has nothing; it begins like the owner's, which must not matter."""
        return f"{self.gateway.tenant}/{uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def module_models() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house(
    make_settings: Callable[..., config.Settings], module_models: ModelServer
) -> AsyncIterator[IsolationStack]:
    """Serve a gateway with models, on a database of its own, and plant a tenant."""
    url = module_models.url
    endpoints: dict[str, Any] = {
        "llm_base_url": url,
        "llm_model": "m",
        "embedding_base_url": url,
        "embedding_model": "e",
        "embedding_dimension": 64,
    }
    settings = make_settings(apart=True, recall_past_turns=5, **endpoints)
    async with serving(settings, f"t-{uuid4().hex[:12]}") as gateway:
        ids = await planted.plant(gateway, module_models)
        async with state.watching(settings) as eye:
            await by_hand.fill(eye, gateway.tenant, ids, planted.CANARY)
            yield IsolationStack(gateway, ids, settings, eye, await eye.of_tenant(gateway.tenant))


@pytest.fixture(params=["both locks", "row-level security alone"])
def locks(request: pytest.FixtureRequest, house: IsolationStack) -> AbstractContextManager[Any]:
    """Return what runs a block with the application's tenant filter, and without it."""
    if request.param == "both locks":
        return nullcontext()
    return tenant_filter.switched_off(house.gateway.resources.postgres.engine)
