"""A worker that dies at any step leaves the old state or the new one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shared.foundation.stages import DreamPass
from shared.infra.postgres import Postgres
from tests.conftest import Gateway
from tests.draining import make_due
from tests.integration.dreams.conftest import execute_run, live, load_run, merge_reply, save_memories
from tests.standins.models import ModelServer
from workers.dream import run_pass


class Killed(BaseException):
    """The process was killed: nothing catches this and nothing is cleaned up."""


class _Death:
    """Kill the worker in its n-th transaction: before the commit, or right after it."""

    def __init__(self, at: int, *, committed: bool) -> None:
        self.remaining = at
        self.committed = committed
        self.for_tenant = Postgres.for_tenant

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        death = self

        @asynccontextmanager
        async def dying(postgres: Postgres, tenant: str) -> AsyncIterator[Any]:
            death.remaining -= 1
            is_last = death.remaining == 0
            async with death.for_tenant(postgres, tenant) as connection:
                yield connection
                if is_last and not death.committed:
                    raise Killed
            if is_last:
                raise Killed

        monkeypatch.setattr(Postgres, "for_tenant", dying)


@pytest.mark.parametrize("committed", [False, True], ids=["before the commit", "after the commit"])
@pytest.mark.parametrize("step", range(1, 10))
async def test_a_kill_at_any_step_leaves_the_old_or_the_new_state_and_the_run_continues(
    model_gateway: Gateway,
    models: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    committed: bool,  # noqa: FBT001
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)
    before = await live(model_gateway)
    body = {"passes": ["deduplicate", "consolidate"]}
    run_id = (await model_gateway.client.post("/v1/dreams", json=body)).json()["id"]

    with monkeypatch.context() as patched:
        _Death(step, committed=committed).install(patched)
        was_killed = await _run_until_killed(model_gateway, run_id)
    between = await live(model_gateway)
    await make_due(model_gateway.resources)
    await execute_run(model_gateway.resources, model_gateway.tenant, run_id)

    after = await live(model_gateway)
    merged = [content for content in after.values() if content.startswith("Ada lives in Lyon; ")]
    assert was_killed or between == after, "the run has fewer transactions than this test counts"
    assert between in (before, after), "neither the old state nor the new one"
    assert len(merged) == 1
    assert set(after) - set(ids)
    assert ids[2] not in after
    diff = (await model_gateway.client.get(f"/v1/dreams/{run_id}/diff")).json()["results"]
    assert sorted(change["action"] for change in diff) == ["archived", "archived", "archived", "created"]


async def _run_until_killed(model_gateway: Gateway, run_id: str) -> bool:
    try:
        for name in ("deduplicate", "consolidate"):
            await run_pass.run_pass(model_gateway.resources, model_gateway.tenant, run_id, DreamPass(name))
    except Killed:
        return True
    return False


async def test_a_pass_is_never_run_twice_at_once(model_gateway: Gateway, models: ModelServer) -> None:
    """Of several workers that got the task of one pass, one claims the job and the others end."""
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)
    response = await model_gateway.client.post("/v1/dreams", json={"passes": ["consolidate"]})
    run_id = response.json()["id"]

    results = await asyncio.gather(
        *(
            run_pass.run_pass(model_gateway.resources, model_gateway.tenant, run_id, DreamPass.CONSOLIDATE)
            for _ in range(8)
        )
    )

    assert sorted(results) == sorted(["done"] + ["not due"] * 7)
    run = await load_run(model_gateway.resources, model_gateway.tenant, run_id)
    assert run.passes[0].applied == {"created": 1, "archived": 3}
