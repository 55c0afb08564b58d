"""A worker that dies at any step leaves the old state or the new (point 8, I5)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shared.foundation.stages import DreamPass
from shared.infra.postgres import Postgres
from tests.conftest import Gateway
from tests.draining import make_due
from tests.integration.dreams.conftest import live, night, proposing, run_of, saved
from tests.standins.models import ModelServer
from workers.dream import run_pass


class Killed(BaseException):
    """The process is gone: nothing catches this, nothing is tidied up."""


class _Death:
    """Let the n-th transaction of the worker die: before it commits, or right after."""

    def __init__(self, at: int, *, committed: bool) -> None:
        self.left = at
        self.committed = committed
        self.tenant = Postgres.for_tenant

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        death = self

        @asynccontextmanager
        async def dying(postgres: Postgres, tenant: str) -> AsyncIterator[Any]:
            death.left -= 1
            last = death.left == 0
            async with death.tenant(postgres, tenant) as connection:
                yield connection
                if last and not death.committed:
                    raise Killed
            if last:
                raise Killed

        monkeypatch.setattr(Postgres, "for_tenant", dying)


@pytest.mark.parametrize("committed", [False, True], ids=["before the commit", "after the commit"])
@pytest.mark.parametrize("step", range(1, 10))
async def test_a_kill_at_any_step_leaves_old_or_new_and_the_next_night_goes_on(
    house: Gateway,
    models: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    committed: bool,  # noqa: FBT001
) -> None:
    ids = await saved(house)
    models.chat_default = proposing(ids)
    before = await live(house)
    body = {"passes": ["deduplicate", "consolidate"]}
    run_id = (await house.client.post("/v1/dreams", json=body)).json()["id"]

    with monkeypatch.context() as patched:
        _Death(step, committed=committed).install(patched)
        died = await _work_until_death(house, run_id)
    between = await live(house)
    await make_due(house.resources)
    await night(house.resources, house.tenant, run_id)

    after = await live(house)
    merged = [content for content in after.values() if content.startswith("Ada lives in Lyon; ")]
    assert died or between == after, "the run is over within fewer transactions than are tried here"
    assert between in (before, after), "neither the old state nor the new"
    assert len(merged) == 1
    assert set(after) - set(ids)
    assert ids[2] not in after
    diff = (await house.client.get(f"/v1/dreams/{run_id}/diff")).json()["results"]
    assert sorted(one["action"] for one in diff) == ["archived", "archived", "archived", "created"]


async def _work_until_death(house: Gateway, run_id: str) -> bool:
    try:
        for name in ("deduplicate", "consolidate"):
            await run_pass.run_pass(house.resources, house.tenant, run_id, DreamPass(name))
    except Killed:
        return True
    return False


async def test_a_run_is_never_done_twice_at_once(house: Gateway, models: ModelServer) -> None:
    """Two workers that are rung for the same pass: one does it, the other finds it taken."""
    ids = await saved(house)
    models.chat_default = proposing(ids)
    begun = await house.client.post("/v1/dreams", json={"passes": ["consolidate"]})
    run_id = begun.json()["id"]

    told = await asyncio.gather(
        *(run_pass.run_pass(house.resources, house.tenant, run_id, DreamPass.CONSOLIDATE) for _ in range(8))
    )

    assert sorted(told) == sorted(["done"] + ["not due"] * 7)
    run = await run_of(house.resources, house.tenant, run_id)
    assert run.passes[0].applied == {"created": 1, "archived": 3}
