"""In whatever order runs are started, sent, claimed, ended and erased, everybody's have their turn."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from shared.dreams.runs import start
from shared.dreams.runs.table import dream_run
from shared.foundation import config, errors
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import PASS_STAGES, DreamPass, RecordKind, stage_of_pass
from shared.infra.postgres import seconds
from shared.jobs import claim
from shared.jobs import queries as job_queries
from shared.jobs.table import job
from shared.lifecycle import erasure
from shared.platform.auth import api_keys
from shared.platform.resources import Resources, open_resources
from tests import run_pass
from tests.long_form import in_long_form
from workers.passes import dispatch
from workers.sweep import jobs as sweep_jobs

TENANT = "t"
PASSES = (DreamPass.MINE_FACTS, DreamPass.DEDUPLICATE)
"""One pass of each stage. Without a model the first is skipped, and with no memories the second."""
USERS = 4
LONG_SECONDS = 3600.0
_USER = st.integers(0, USERS - 1)
_ACTION = st.one_of(
    st.tuples(st.sampled_from(["start", "erase", "orphan"]), _USER),
    st.tuples(st.sampled_from(["dispatch", "pass_time", "run", "lose", "die"]), st.just(0)),
)
_STEPS = st.lists(st.lists(_ACTION, min_size=1, max_size=3), max_size=8)
"""The actions of one step happen at once."""


@dataclass
class Fleet:
    """Workers of a database of its own, whose tasks wait here instead of in a broker."""

    resources: Resources
    tasks: list[tuple[DreamPass, str, str]] = field(default_factory=list)

    def collect(self, task: str, **arguments: Any) -> None:
        """Take a task instead of the broker."""
        self.tasks.append((DreamPass(task.partition(".")[2]), arguments["run"], arguments["user"]))

    async def act(self, action: str, user: int) -> None:
        """Do one thing that can happen."""
        await getattr(self, action)(*([f"user-{user}"] if action in {"start", "erase", "orphan"} else []))

    async def start(self, user_id: str) -> None:
        """Start a run, unless the user has one."""
        scope = Scope(TENANT, "helper", user_id)
        with suppress(errors.Conflict):
            await start.start_on_demand(self.resources, scope, "k", PASSES, dry_run=False)

    async def erase(self, user_id: str) -> None:
        """Erase a user."""
        await erasure.erase_user(self.resources, Caller("k", TENANT, frozenset()), user_id)

    async def orphan(self, user_id: str) -> None:
        """Leave a job without a run, as erasures of earlier releases did."""
        stage = PASS_STAGES[int(user_id[-1]) % len(PASS_STAGES)]
        async with self.resources.postgres.for_tenant(TENANT) as tx:
            ids = {uuid4().hex: 1}
            await job_queries.enqueue(tx, TENANT, RecordKind.DREAM_RUN, stage, ids)

    async def dispatch(self) -> None:
        """Send what is to be sent, as beat has it done."""
        await dispatch.dispatch_next_passes(self.resources)

    async def pass_time(self) -> None:
        """Let an hour pass: leases end, and what was sent may be lost."""
        values = {
            "run_at": job.c.run_at - seconds(LONG_SECONDS),
            "sent_at": job.c.sent_at - seconds(LONG_SECONDS),
        }
        async with self.resources.postgres.across_tenants() as tx:
            await tx.execute(update(job).where(job.c.kind == RecordKind.DREAM_RUN).values(values))

    async def lose(self) -> None:
        """Lose a task on its way."""
        self.tasks[:1] = []

    async def die(self) -> None:
        """Claim a job and die."""
        if self.tasks:
            name, run_id, _ = self.tasks.pop(0)
            async with self.resources.postgres.for_tenant(TENANT) as tx:
                stage, kind = stage_of_pass(name), RecordKind.DREAM_RUN
                await claim.claim_one(tx, kind, run_id, stage, LONG_SECONDS / 2)

    async def run(self) -> None:
        """Run the pass of a task."""
        if self.tasks:
            name, run_id, _ = self.tasks.pop(0)
            await run_pass.run_pass(self.resources, TENANT, run_id, name)

    async def work_an_hour(self, lost_user: str | None = None) -> None:
        """Let workers do for an hour what they are sent. The tasks of one user are lost whenever sent."""
        await self.pass_time()
        await sweep_jobs.fail_exhausted_jobs(self.resources)
        await self.dispatch()
        while self.tasks:
            if self.tasks[0][2] == lost_user:
                await self.lose()
            else:
                await self.run()

    async def list_jobs(self) -> list[str]:
        """Return the ids of the runs that have a job."""
        async with self.resources.postgres.for_tenant(TENANT) as tx:
            is_of_run = job.c.kind == RecordKind.DREAM_RUN
            return list(await tx.scalars(select(job.c.record_id).where(is_of_run)))

    async def count_running(self, user_id: str | None = None) -> int:
        """Return how many runs have not ended, of one user or all."""
        statement = select(func.count()).where(dream_run.c.tenant == TENANT, dream_run.c.state == "running")
        if user_id is not None:
            statement = statement.where(dream_run.c.user_id == user_id)
        async with self.resources.postgres.for_tenant(TENANT) as tx:
            return int(await tx.scalar(statement) or 0)


def test_no_order_of_events_lets_a_job_hold_a_place_for_ever(
    make_settings: Callable[..., config.Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    with asyncio.Runner() as runner:
        opened = open_resources(make_settings(apart=True))
        fleet = Fleet(runner.run(opened.__aenter__()))
        monkeypatch.setattr(fleet.resources.publisher, "send", fleet.collect)
        runner.run(api_keys.issue(fleet.resources.postgres, TENANT))

        @given(steps=_STEPS)
        @hypothesis_settings(max_examples=in_long_form(300, otherwise=15))
        def everybody_has_a_turn(steps: list[list[tuple[str, int]]]) -> None:
            runner.run(_check(fleet, steps))

        try:
            everybody_has_a_turn()
        finally:
            runner.run(opened.__aexit__(None, None, None))


async def _check(fleet: Fleet, steps: list[list[tuple[str, int]]]) -> None:
    for step in steps:
        await asyncio.gather(*(fleet.act(action, user) for action, user in step))
    await fleet.start("healthy")
    rounds = len(PASSES) * (USERS + 1)
    for _ in range(rounds):
        if await fleet.count_running("healthy"):
            await fleet.work_an_hour(lost_user="user-0")
    assert await fleet.count_running("healthy") == 0, "it had no turn"
    for _ in range(rounds):
        if await fleet.list_jobs():
            await fleet.work_an_hour()
    assert (await fleet.list_jobs(), await fleet.count_running()) == ([], 0)
