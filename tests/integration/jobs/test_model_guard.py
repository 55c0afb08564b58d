"""A refused model pauses its stage for all workers; one call in an interval probes it, and ends the pause."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from sqlalchemy import update

from shared.foundation import config, errors
from shared.foundation.stages import ReasonCode
from shared.infra.model_endpoint import ModelIdentity
from shared.infra.postgres import Postgres, seconds
from shared.jobs import model_pauses
from shared.jobs.model_guard import claim_limit, guard
from shared.jobs.table import model_pause
from shared.platform.resources import Resources, open_resources

MODEL = ModelIdentity("endpoint", "model", "settings")
STAGE = "enrichment"
INTERVAL = 60.0


@pytest.fixture
async def resources(
    make_settings: Callable[..., config.Settings], database: dict[str, str]
) -> AsyncIterator[Resources]:
    async with open_resources(make_settings(**database, model_probe_interval=INTERVAL)) as opened:
        yield opened


async def call(
    resources: Resources,
    error: Exception | None = None,
    identity: ModelIdentity = MODEL,
    stage: str = STAGE,
) -> None:
    """Make a guarded call that ends with this error."""
    async with guard(resources.postgres, resources.settings, stage, identity):
        if error is not None:
            raise error


async def refuse(resources: Resources, identity: ModelIdentity = MODEL, stage: str = STAGE) -> None:
    """Make a call that the endpoint refuses because of its key."""
    with pytest.raises(errors.ModelRefused):
        await call(resources, refusal(), identity, stage)


def refusal(reason_code: ReasonCode = ReasonCode.KEY_REFUSED) -> errors.ModelRefused:
    return errors.ModelRefused("the model", "refused", reason_code)


async def pauses(resources: Resources) -> list[tuple[str, ReasonCode]]:
    async with resources.postgres.across_tenants() as tx:
        return [(pause.stage, pause.reason_code) for pause in await model_pauses.list_all(tx)]


async def pass_time(postgres: Postgres, passed: float) -> None:
    """Let the probes of all pauses be due `passed` seconds earlier."""
    async with postgres.across_tenants() as tx:
        earlier = model_pause.c.next_probe_at - seconds(passed)
        await tx.execute(update(model_pause).values(next_probe_at=earlier))


async def test_a_refused_call_pauses_the_stage_and_the_next_call_is_not_made(resources: Resources) -> None:
    await call(resources)
    assert await pauses(resources) == []
    own = refusal()
    with pytest.raises(errors.ModelRefused):
        await call(resources, own)
    assert own.retry_after == INTERVAL
    assert await pauses(resources) == [(STAGE, ReasonCode.KEY_REFUSED)]

    was_called = False
    with pytest.raises(errors.ModelRefused) as stopped:
        async with guard(resources.postgres, resources.settings, STAGE, MODEL):
            was_called = True

    assert not was_called
    assert stopped.value.reason_code is ReasonCode.KEY_REFUSED
    assert INTERVAL - 30 < (stopped.value.retry_after or 0) <= INTERVAL


async def test_an_interval_later_one_call_probes_and_its_answer_ends_the_pause(resources: Resources) -> None:
    await refuse(resources)
    await pass_time(resources.postgres, INTERVAL)
    async with guard(resources.postgres, resources.settings, STAGE, MODEL):
        with pytest.raises(errors.ModelRefused):
            await call(resources)
        assert await pauses(resources), "not before the answer"
    assert await pauses(resources) == []
    await call(resources)


async def test_a_refused_probe_waits_for_another_interval(resources: Resources) -> None:
    await refuse(resources)
    for _ in range(2):
        await pass_time(resources.postgres, INTERVAL)
        was_called = False
        with pytest.raises(errors.ModelRefused):  # noqa: PT012  (it passes through the guard)
            async with guard(resources.postgres, resources.settings, STAGE, MODEL):
                was_called = True
                raise refusal()
        assert was_called
        with pytest.raises(errors.ModelRefused, match="is paused"):
            await call(resources)


async def test_a_refusal_while_another_call_runs_moves_the_next_probe(resources: Resources) -> None:
    with pytest.raises(errors.ModelRefused):  # noqa: PT012  (it passes through the guard)
        async with guard(resources.postgres, resources.settings, STAGE, MODEL):
            await refuse(resources)
            await pass_time(resources.postgres, INTERVAL)
            raise refusal()
    with pytest.raises(errors.ModelRefused, match="is paused"):
        await call(resources)


async def test_another_reason_replaces_the_first(resources: Resources) -> None:
    await refuse(resources)
    await pass_time(resources.postgres, INTERVAL)
    with pytest.raises(errors.ModelRefused):
        await call(resources, refusal(ReasonCode.QUOTA_USED_UP))
    assert await pauses(resources) == [(STAGE, ReasonCode.QUOTA_USED_UP)]


@pytest.mark.parametrize(
    ("error", "is_answer"),
    [
        (errors.InvalidModelReply("nonsense"), True),
        (errors.CutOffReply("cut off"), True),
        (errors.PromptTooLong("too long", rejected_by_endpoint=True), True),
        (errors.InvalidModelReply("bad request", rejected_by_endpoint=True), False),
        (errors.Unavailable("the model", "away"), False),
    ],
)
async def test_a_probe_ends_the_pause_if_the_model_answered(
    resources: Resources, error: Exception, *, is_answer: bool
) -> None:
    await refuse(resources)
    await pass_time(resources.postgres, INTERVAL)
    with pytest.raises(type(error)):
        await call(resources, error)
    assert (await pauses(resources) == []) == is_answer


@pytest.mark.parametrize("error", [None, errors.InvalidModelReply("nonsense")])
async def test_a_call_that_began_before_the_pause_does_not_end_it(
    resources: Resources, error: Exception | None
) -> None:
    with suppress(errors.InvalidModelReply):
        async with guard(resources.postgres, resources.settings, STAGE, MODEL):
            await refuse(resources)
            if error:
                raise error
    assert await pauses(resources) == [(STAGE, ReasonCode.KEY_REFUSED)]


async def test_new_settings_are_probed_at_once_and_by_one_call(resources: Resources) -> None:
    """The key was changed: whoever has the old one waits, and two processes with the new one probe once."""
    new = replace(MODEL, settings="new settings")
    await refuse(resources)
    assert await limits(resources, MODEL) == 0
    assert await limits(resources, new) == 1
    async with guard(resources.postgres, resources.settings, STAGE, new):
        for identity in (MODEL, new):
            with pytest.raises(errors.ModelRefused, match="is paused"):
                await call(resources, identity=identity)
    assert await pauses(resources) == []


async def test_settings_that_were_refused_later_wait_like_the_first(resources: Resources) -> None:
    new = replace(MODEL, settings="new settings")
    await refuse(resources)
    await refuse(resources, new)
    for identity in (MODEL, new):
        assert await limits(resources, identity) == 0
    async with resources.postgres.across_tenants() as tx:
        await model_pauses.begin(tx, STAGE, new, ReasonCode.KEY_REFUSED, INTERVAL)
        (refused,) = await tx.scalars(model_pause.select().with_only_columns(model_pause.c.refused_settings))
    assert sorted(refused) == ["new settings", "settings"], "each once"


async def test_another_model_endpoint_or_stage_is_not_paused(resources: Resources) -> None:
    await refuse(resources)
    await call(resources, identity=replace(MODEL, model="another"))
    await call(resources, identity=replace(MODEL, endpoint="another"))
    assert await pauses(resources) == [(STAGE, ReasonCode.KEY_REFUSED)]
    await call(resources, stage="embedding")
    assert await pauses(resources) == [], "the key is accepted after all"


async def test_an_answer_ends_the_pauses_of_this_model_in_all_stages_and_of_no_other(
    resources: Resources,
) -> None:
    other_model, other_endpoint = replace(MODEL, model="another"), replace(MODEL, endpoint="another")
    for stage in (STAGE, "dreams"):
        await refuse(resources, stage=stage)
    await refuse(resources, other_model, "embedding")
    await refuse(resources, other_endpoint, "summary")
    await pass_time(resources.postgres, INTERVAL)
    await call(resources)
    assert sorted(stage for stage, _ in await pauses(resources)) == ["embedding", "summary"]


async def limits(resources: Resources, identity: ModelIdentity | None, limit: int = 8) -> int:
    async with resources.postgres.across_tenants() as tx:
        return await claim_limit(tx, STAGE, identity, limit)


async def test_of_a_paused_stage_one_job_is_claimed_when_its_probe_is_due(resources: Resources) -> None:
    assert await limits(resources, None) == 8
    assert await limits(resources, MODEL) == 8
    await refuse(resources)
    assert await limits(resources, None) == 8
    assert await limits(resources, MODEL) == 0
    await pass_time(resources.postgres, INTERVAL)
    assert await limits(resources, MODEL) == 1
    assert await limits(resources, MODEL, limit=0) == 0


async def test_a_probe_that_is_due_is_due_in_no_seconds(resources: Resources) -> None:
    await refuse(resources)
    await pass_time(resources.postgres, INTERVAL + 100)
    async with resources.postgres.across_tenants() as tx:
        found = [
            await model_pauses.find(tx, STAGE, MODEL),
            await model_pauses.find(tx, STAGE, replace(MODEL, settings="new settings")),
            *await model_pauses.list_all(tx),
        ]
    assert [pause and pause.seconds_to_probe for pause in found] == [0.0] * 3


async def test_a_pause_that_nobody_probes_any_more_is_deleted(resources: Resources) -> None:
    await refuse(resources)
    await pass_time(resources.postgres, INTERVAL + 100)
    async with resources.postgres.across_tenants() as tx:
        await model_pauses.delete_stale(tx, 200)
    assert await pauses(resources) == [(STAGE, ReasonCode.KEY_REFUSED)]
    async with resources.postgres.across_tenants() as tx:
        await model_pauses.delete_stale(tx, 50)
    assert await pauses(resources) == []


async def test_a_probe_is_due_at_its_very_time_and_is_not_stale_then(resources: Resources) -> None:
    async with resources.postgres.across_tenants() as tx:
        await model_pauses.begin(tx, STAGE, MODEL, ReasonCode.KEY_REFUSED, 0)
        await model_pauses.delete_stale(tx, 0)
        assert await model_pauses.claim_probe(tx, STAGE, MODEL, INTERVAL)
        assert not await model_pauses.claim_probe(tx, STAGE, MODEL, INTERVAL)
