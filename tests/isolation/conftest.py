"""One stack for all of these tests: a tenant that owns a record of every kind, and its models."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from shared.foundation import config
from tests import state
from tests.conftest import Gateway, running_gateway
from tests.isolation import raw_rows, sample_tenant, tenant_filter
from tests.isolation.ids import Ids
from tests.standins.models import ModelServer
from tests.state import State, StateInspector


@dataclass(frozen=True)
class IsolationStack:
    """A served gateway, the ids of its tenant's records, and the initial state of these records."""

    gateway: Gateway
    ids: Ids
    settings: config.Settings
    inspector: StateInspector
    initial_state: State

    async def state(self) -> State:
        """Return what the databases hold of the owner now."""
        await self.gateway.resources.index_writer.close()
        return await self.inspector.tenant_state(self.gateway.tenant)

    def stranger(self) -> str:
        """Return a new tenant's name. It begins with the owner's name, which must not give it any access."""
        return f"{self.gateway.tenant}/{uuid4().hex[:8]}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stack(
    make_settings: Callable[..., config.Settings], module_models: ModelServer
) -> AsyncIterator[IsolationStack]:
    """Serve a gateway with models on a database of its own, and give a tenant a record of every kind."""
    url = module_models.url
    endpoints: dict[str, Any] = {
        "llm_base_url": url,
        "llm_model": "m",
        "embedding_base_url": url,
        "embedding_model": "e",
        "embedding_dimension": 64,
    }
    settings = make_settings(apart=True, recall_past_turns=5, **endpoints)
    async with running_gateway(settings, f"t-{uuid4().hex[:12]}") as gateway:
        ids = await sample_tenant.fill(gateway, module_models)
        async with state.watching(settings) as inspector:
            await raw_rows.fill(inspector, gateway.tenant, ids, sample_tenant.SECRET)
            yield IsolationStack(
                gateway, ids, settings, inspector, await inspector.tenant_state(gateway.tenant)
            )


@pytest.fixture(params=["filter and row-level security", "row-level security alone"])
def protection(request: pytest.FixtureRequest, stack: IsolationStack) -> AbstractContextManager[Any]:
    """Return a context that runs a block with the application's tenant filter, or without it."""
    if request.param == "row-level security alone":
        return tenant_filter.disabled(stack.gateway.resources.postgres.engine)
    return nullcontext()
