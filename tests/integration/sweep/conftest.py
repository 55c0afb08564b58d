"""Houses for the sweep: it goes across tenants and generations, so they have a database of their own."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from shared.foundation import config
from tests.conftest import Gateway, serving
from tests.integration.sweep.house import TestStack
from tests.standins.models import ModelServer


@pytest.fixture(scope="module")
def standin() -> Iterator[ModelServer]:
    """A stand-in for the model endpoints, for a fleet that lives as long as a module."""
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
async def fleet(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """A gateway without any model, where history and turns have their last days too."""
    settings = make_settings(
        apart=True, retention_turn_days=10, retention_history_days=30, job_max_attempts=2
    )
    async with serving(settings, f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture
async def house(fleet: Gateway, tenant: str) -> AsyncIterator[TestStack]:
    """A tenant of its own in the fleet, in which a sweep finds nothing left to mend from elsewhere."""
    async with moved_in(fleet, tenant) as house:
        yield house


@asynccontextmanager
async def moved_in(fleet: Gateway, tenant: str) -> AsyncIterator[TestStack]:
    """Let a tenant into a fleet where everything has been mended."""
    async with await fleet.another(tenant) as client:
        house = TestStack(Gateway(client, fleet.resources, tenant))
        await house.settle()
        await house.sweep()
        await house.settle()
        yield TestStack(house.gateway, await house.repairs())
