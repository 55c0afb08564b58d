"""Fixtures for the sweep: it covers all tenants and generations, so it needs a database of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from shared.foundation import config
from tests.conftest import Gateway, running_gateway
from tests.integration.sweep.stack import TestStack


@pytest.fixture(scope="module")
async def fleet(make_settings: Callable[..., config.Settings]) -> AsyncIterator[Gateway]:
    """Start a gateway without models, where history and turns have a retention period."""
    settings = make_settings(
        apart=True, retention_turn_days=10, retention_history_days=30, job_max_attempts=2
    )
    async with running_gateway(settings, f"t-{uuid4().hex[:12]}") as gateway:
        yield gateway


@pytest.fixture
async def stack(fleet: Gateway, tenant: str) -> AsyncIterator[TestStack]:
    """Return a new tenant's stack in which a sweep finds nothing to repair from other tests."""
    async with open_stack(fleet, tenant) as stack:
        yield stack


@asynccontextmanager
async def open_stack(fleet: Gateway, tenant: str) -> AsyncIterator[TestStack]:
    """Open a tenant's stack after everything has been repaired."""
    async with await fleet.new_client(tenant) as client:
        stack = TestStack(Gateway(client, fleet.resources, tenant))
        await stack.process_all()
        await stack.sweep()
        await stack.process_all()
        yield TestStack(stack.gateway, await stack.repairs())
        await stack.leave()
