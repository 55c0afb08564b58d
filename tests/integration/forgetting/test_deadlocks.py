"""Writers that wait for each other in a circle: Postgres ends one, which begins again by itself."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from http import HTTPStatus

import asyncpg
import pytest
from sqlalchemy import func, select, text

from shared.foundation import errors
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.memory.longterm import queries
from shared.memory.longterm.table import memory
from tests.agent import Agent, wait_until
from tests.conftest import Gateway
from tests.locks import wait_until_blocked

_TEXTS = ("One.", "Two.", "Three.")
_DEADLOCK = asyncpg.DeadlockDetectedError.__name__


async def _erase(agent: Agent) -> int:
    receipt = await agent.request("DELETE", "/v1/users/ada")
    return int(receipt["erased"]["memories"])


async def _save_again(agent: Agent) -> int:
    body = {"memories": [{"content": content, "user_id": "ada", "enrich": False} for content in _TEXTS]}
    saved = await agent.request("POST", "/v1/memories/batch", json=body, status=HTTPStatus.CREATED)
    return sum(result["reinforcement_count"] == 2 for result in saved["results"])


@pytest.mark.parametrize(("request_all", "order"), [(_erase, "id"), (_save_again, "fingerprint")])
async def test_a_request_that_postgres_ended_for_a_deadlock_is_answered(
    gateway: Gateway, request_all: Callable[[Agent], Awaitable[int]], order: str
) -> None:
    agent, for_tenant = Agent(gateway.client, gateway.tenant), gateway.resources.postgres.for_tenant
    for content in _TEXTS:
        await agent.save(content, user_id="ada", enrich=False)
    async with for_tenant(gateway.tenant) as waiting:
        of_tenant = select(memory.c.id).where(memory.c.tenant == gateway.tenant)
        first, second, third = await waiting.scalars(of_tenant.order_by(memory.c[order]))
        # Of those in the circle Postgres ends the one that finds it; this one won't look in time.
        await waiting.execute(text("SET LOCAL ROLE NONE"))
        await waiting.execute(text("SET LOCAL deadlock_timeout = '5min'"))
        process = await waiting.scalar(select(func.pg_backend_pid()))
        await queries.lock(waiting, [third])
        async with for_tenant(gateway.tenant) as between:
            await queries.lock(between, [second])
            answer = asyncio.ensure_future(request_all(agent))
            await wait_until_blocked(between, answer)
            last = asyncio.ensure_future(queries.lock(waiting, [first]))
            await wait_until(lambda: between.scalar(select(func.cardinality(func.pg_blocking_pids(process)))))
        await last
    assert await answer == len(_TEXTS)


@pytest.mark.parametrize(
    ("reason", "failures", "attempts"),
    [(_DEADLOCK, 4, 5), (_DEADLOCK, 9, 5), ("ConnectionDoesNotExistError", 9, 1)],
)
async def test_only_a_deadlock_is_a_reason_to_begin_again_and_not_for_ever(
    reason: str, failures: int, attempts: int
) -> None:
    begun: list[int] = []

    @repeated_after_deadlock
    async def transaction() -> None:
        begun.append(len(begun))
        if len(begun) <= failures:
            raise errors.Unavailable("postgres", reason)

    with nullcontext() if failures < attempts else pytest.raises(errors.Unavailable):
        await transaction()
    assert len(begun) == attempts
