"""A worker measures the judge: once, to the end, at the installation's expense, and nobody waits for it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update

from shared.foundation import config
from shared.foundation.stages import CALIBRATE_TASK
from shared.jobs.table import model_pause
from shared.platform.resources import Resources, open_resources
from shared.platform.spend.charge import Payer
from shared.verification import calibration, queries
from shared.verification.claim import Claim, Evidence, Verdict
from shared.verification.judge_identity import identity_of
from shared.verification.table import judge_calibration, judge_calibration_spend
from shared.verification.trusted_judge import find_trusted_judge
from tests.databases import empty_tables
from tests.standins.asked_claims import by_label, lying_in_a_third, yes_to_all
from tests.standins.behaviours import Hang, Status
from tests.standins.judge_server import JudgeServer, cut_off, garbage
from tests.standins.wire import Behaviour
from workers.enrichment.calibrate_judge import calibrate_if_due
from workers.sweep.judge_calibration import wake_if_due

Make = Callable[..., config.Settings]
PAIRS = len(calibration.read())
SAID = Claim("Ada lives in Graz.", (Evidence("user", "2026-01-02", "I live in Graz."),))


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


@pytest.fixture
async def resources(
    make_settings: Make, database: dict[str, str], server: JudgeServer
) -> AsyncIterator[Resources]:
    await empty_tables(database["postgres_url"], "judge_calibration", "judge_calibration_spend")
    settings = make_settings(**database, judge_base_url=server.url, judge_model="j")
    async with open_resources(settings) as resources:
        yield resources


async def row_of(resources: Resources) -> Any:
    async with resources.postgres.across_tenants() as tx:
        return (await tx.execute(select(judge_calibration))).one()


async def set_row(resources: Resources, **values: Any) -> None:
    async with resources.postgres.across_tenants() as tx:
        await tx.execute(update(judge_calibration).values(**values))


async def used_tokens(resources: Resources) -> int:
    async with resources.postgres.across_tenants() as tx:
        return (await tx.scalar(select(func.sum(judge_calibration_spend.c.tokens)))) or 0


async def is_trusted(resources: Resources) -> bool:
    return await find_trusted_judge(resources) is not None


def asked_ids(server: JudgeServer) -> list[str]:
    return [claim.pair.id for claim in server.asked if claim.pair is not None]


async def test_one_that_answers_by_the_labels_is_trusted(resources: Resources, server: JudgeServer) -> None:
    assert not await is_trusted(resources)
    assert await calibrate_if_due(resources) == PAIRS
    assert await is_trusted(resources)
    row = await row_of(resources)
    assert (row.state, row.calibrated_model, row.answers, row.lease_token) == ("trusted", "j", {}, None)
    assert sorted(asked_ids(server)) == sorted(pair.id for pair in calibration.read())
    assert max(Counter(asked_ids(server)).values()) == 1
    assert await calibrate_if_due(resources) == 0  # not due again


@pytest.mark.parametrize("verdict_of", [yes_to_all, lying_in_a_third])
async def test_one_that_says_yes_to_all_or_lies_in_a_third_is_not(
    resources: Resources, server: JudgeServer, verdict_of: Any
) -> None:
    server.verdict_of = verdict_of
    assert await calibrate_if_due(resources) == PAIRS
    assert (await row_of(resources)).state == "not_trusted"
    assert not await is_trusted(resources)


@pytest.mark.parametrize(("behaviour", "most_calls"), [(garbage(), 8), (cut_off(), 165)])
async def test_replies_without_verdicts_are_wrong_ones_and_not_asked_for_ever(
    resources: Resources, server: JudgeServer, behaviour: Behaviour, most_calls: int
) -> None:
    server.chat_default = behaviour
    assert await calibrate_if_due(resources) == PAIRS
    assert (await row_of(resources)).state == "not_trusted"
    assert len(server.judge_calls) <= most_calls


async def test_what_is_cut_off_is_asked_in_smaller_parts(resources: Resources, server: JudgeServer) -> None:
    server.chat_replies.append(cut_off())
    await calibrate_if_due(resources)
    assert await is_trusted(resources)
    assert [len(asked) for asked in (server.asked[:20], server.asked[20:30])] == [20, 10]
    assert len(server.asked) == PAIRS + 20


async def test_a_worker_that_is_killed_leaves_what_it_has_asked(
    resources: Resources, server: JudgeServer
) -> None:
    hang = Hang()
    server.chat_replies.extend([server.chat_default, server.chat_default, hang])
    worker = asyncio.create_task(calibrate_if_due(resources))
    await asyncio.to_thread(server.wait_for_calls, 3)
    row = await row_of(resources)
    assert len(row.answers) == 40
    assert await calibrate_if_due(resources) == 0  # it may still live
    assert not await wake_if_due(resources)
    await kill(worker, resources, row)
    assert await calibrate_if_due(resources) == PAIRS - 40
    assert await is_trusted(resources)
    times = Counter(asked_ids(server))
    assert sorted(times.values()) == [1] * (PAIRS - 20) + [2] * 20  # what it was asking, and nothing before
    hang.release.set()


async def kill(worker: "asyncio.Task[int]", resources: Resources, row: Any) -> None:
    """End a worker, and leave its lease as if it had not been able to end it; then let the lease be over."""
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    await set_row(resources, lease_token=row.lease_token, leased_until=row.leased_until)
    assert await calibrate_if_due(resources) == 0
    await set_row(resources, leased_until=func.now())


async def test_a_worker_that_stops_lets_another_go_on_at_once(
    resources: Resources, server: JudgeServer
) -> None:
    hang = Hang()
    server.chat_replies.extend([server.chat_default, hang])
    worker = asyncio.create_task(calibrate_if_due(resources))
    await asyncio.to_thread(server.wait_for_calls, 2)
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    hang.release.set()
    assert await calibrate_if_due(resources) == PAIRS - 20


async def test_two_workers_at_once_ask_each_claim_once(resources: Resources, server: JudgeServer) -> None:
    hang = Hang()
    server.chat_replies.append(hang)
    workers = [asyncio.create_task(calibrate_if_due(resources)) for _ in range(2)]
    await asyncio.to_thread(server.wait_for_calls, 1)
    assert await calibrate_if_due(resources) == 0
    hang.release.set()
    assert sorted(await asyncio.gather(*workers)) == [0, PAIRS]
    assert set(Counter(asked_ids(server)).values()) == {1}


async def test_who_has_lost_the_lease_stores_nothing_and_asks_no_more(
    resources: Resources, server: JudgeServer
) -> None:
    hang = Hang()
    server.chat_replies.append(hang)
    worker = asyncio.create_task(calibrate_if_due(resources))
    await asyncio.to_thread(server.wait_for_calls, 1)
    await set_row(resources, leased_until=func.now())
    server.verdict_of = yes_to_all
    assert await calibrate_if_due(resources) == PAIRS
    hang.release.set()
    assert await worker == 0
    assert (await row_of(resources)).state == "not_trusted"
    assert len(server.judge_calls) == 9


async def test_an_endpoint_that_goes_away_is_asked_on_later(
    resources: Resources, server: JudgeServer
) -> None:
    server.chat_replies.extend([server.chat_default, Status(503, retry_after=100)])
    assert await calibrate_if_due(resources) == 20
    assert not await is_trusted(resources)
    assert not await wake_if_due(resources)
    assert await calibrate_if_due(resources) == 0
    assert await seconds_to_wait(resources) > 90
    await set_row(resources, not_before=func.now())
    assert await calibrate_if_due(resources) == PAIRS - 20
    assert await is_trusted(resources)


async def seconds_to_wait(resources: Resources) -> float:
    async with resources.postgres.across_tenants() as tx:
        wait = select(func.extract("epoch", judge_calibration.c.not_before - func.now()))
        return float(await tx.scalar(wait) or 0)


async def test_an_endpoint_that_refuses_everything_pauses_the_judge_and_no_other_stage(
    resources: Resources, server: JudgeServer
) -> None:
    server.chat_default = Status(401)
    assert await calibrate_if_due(resources) == 0
    row = await row_of(resources)
    assert (row.state, row.failures, row.lease_token) == ("measuring", 1, None)
    server.reset()
    await set_row(resources, not_before=func.now())
    assert await calibrate_if_due(resources) == 0  # paused: the next probe is not due
    async with resources.postgres.across_tenants() as tx:
        await tx.execute(update(model_pause).values(next_probe_at=func.now()))
    await set_row(resources, not_before=func.now())
    assert await calibrate_if_due(resources) == PAIRS


async def test_a_model_that_changes_in_the_middle_is_measured_from_the_beginning(
    resources: Resources, server: JudgeServer
) -> None:
    hang = Hang()
    server.verdict_of = yes_to_all
    server.chat_replies.extend([server.chat_default, hang])
    worker = asyncio.create_task(calibrate_if_due(resources))
    await asyncio.to_thread(server.wait_for_calls, 2)
    server.model, server.verdict_of = "j-2", by_label
    hang.release.set()
    await worker
    row = await row_of(resources)
    assert (row.state, row.answering_model, len(row.answers), row.failures) == ("measuring", "j-2", 20, 1)
    await set_row(resources, not_before=func.now())
    assert await calibrate_if_due(resources) == PAIRS - 20
    judge = await find_trusted_judge(resources)
    assert judge is not None
    assert judge.model == "j-2"


async def test_a_model_that_changed_is_not_trusted_until_it_is_measured(
    resources: Resources, server: JudgeServer, tenant: str, sent: list[str]
) -> None:
    await calibrate_if_due(resources)
    judge = await find_trusted_judge(resources)
    assert judge is not None
    server.model, server.verdict_of = "j-2", yes_to_all
    assert await judge.ask(Payer(tenant, "a", None, "mining"), [SAID]) == [None]
    assert sent == [CALIBRATE_TASK]
    assert not await is_trusted(resources)
    assert await calibrate_if_due(resources) == PAIRS
    assert not await is_trusted(resources)
    server.verdict_of = by_label
    await set_row(resources, calibrated_at=func.now() - timedelta(days=8))
    assert await calibrate_if_due(resources) == PAIRS
    assert await is_trusted(resources)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks that are sent."""
    tasks: list[str] = []
    monkeypatch.setattr("shared.infra.broker.TaskPublisher.send", lambda _, task: tasks.append(task))
    return tasks


async def test_the_sweep_wakes_a_worker_only_while_it_is_due(resources: Resources, sent: list[str]) -> None:
    assert await wake_if_due(resources)
    assert sent == [CALIBRATE_TASK]
    await calibrate_if_due(resources)
    assert not await wake_if_due(resources)
    await set_row(resources, calibrated_at=func.now() - timedelta(days=6))
    assert not await wake_if_due(resources)
    await set_row(resources, calibrated_at=func.now() - timedelta(days=8))
    assert await is_trusted(resources)  # until it is measured again, or that fails for another week
    assert await wake_if_due(resources)
    assert sent == [CALIBRATE_TASK] * 2


async def test_a_budget_that_is_used_up_is_waited_for_and_no_tenant_pays(
    make_settings: Make, database: dict[str, str], resources: Resources, server: JudgeServer, tenant: str
) -> None:
    await calibrate_if_due(resources)
    whole = await used_tokens(resources)
    reported = sum(usage_of(call.prompt) for call in server.judge_calls)
    assert whole > reported > 0  # with the replies
    small = make_settings(
        **database, judge_base_url=server.url, judge_model="k", judge_calibration_tokens=whole + 16_000
    )
    async with open_resources(small) as other:
        assert 0 < await calibrate_if_due(other) < PAIRS
        assert await used_tokens(other) <= whole + 16_000
        async with other.postgres.across_tenants() as tx:
            row = await queries.find(tx, identity_of(judge_of(other)))
        assert row is not None
        assert row["state"] == "measuring"
        assert await calibrate_if_due(other) == 0
        assert not await is_trusted(other)
        # Who is trusted goes on: the installation's budget is not theirs.
        trusted = await find_trusted_judge(resources)
        assert trusted is not None
        server.labels[SAID.statement] = Verdict.SUPPORTED
        [judgement] = await trusted.ask(Payer(tenant, "a", None, "mining"), [SAID])
        assert judgement is not None
    async with resources.postgres.across_tenants() as tx:
        last_week = judge_calibration_spend.c.week - 7
        await tx.execute(update(judge_calibration_spend).values(week=last_week))
    await set_row(resources, not_before=func.now())
    async with open_resources(small.model_copy(update={"judge_calibration_tokens": 10**6})) as other:
        assert await calibrate_if_due(other) > 0
        assert await is_trusted(other)


def usage_of(prompt: str) -> int:
    return len(prompt.split())


def judge_of(resources: Resources) -> Any:
    assert resources.judge_model is not None
    return resources.judge_model


async def test_a_call_whose_end_nobody_saw_counts_with_its_upper_bound(
    resources: Resources, server: JudgeServer
) -> None:
    server.chat_replies.append(Status(429))
    await calibrate_if_due(resources)
    assert await used_tokens(resources) == 0
    hang = Hang()
    server.chat_replies.append(hang)
    await set_row(resources, not_before=func.now())
    worker = asyncio.create_task(calibrate_if_due(resources))
    await asyncio.to_thread(server.wait_for_calls, 2)
    prompt = server.judge_calls[-1].prompt
    assert await used_tokens(resources) > len(prompt.encode())
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    hang.release.set()
    assert await used_tokens(resources) > len(prompt.encode())


async def test_with_no_tokens_nothing_is_asked(
    make_settings: Make, database: dict[str, str], resources: Resources, server: JudgeServer
) -> None:
    settings = make_settings(
        **database, judge_base_url=server.url, judge_model="j", judge_calibration_tokens=0
    )
    async with open_resources(settings) as other:
        assert not await wake_if_due(other)
        assert await calibrate_if_due(other) == 0
    assert server.calls == []


async def test_judges_that_are_configured_no_more_are_forgotten(resources: Resources) -> None:
    await calibrate_if_due(resources)
    await set_row(resources, endpoint="another")
    await set_row(
        resources,
        not_before=func.now() - timedelta(days=69),
        calibrated_at=func.now() - timedelta(days=69),
    )
    await wake_if_due(resources)
    assert (await row_of(resources)).endpoint == "another"
    await set_row(
        resources,
        not_before=func.now() - timedelta(days=71),
        calibrated_at=func.now() - timedelta(days=71),
    )
    await wake_if_due(resources)
    async with resources.postgres.across_tenants() as tx:
        assert (await tx.execute(select(judge_calibration))).all() == []
