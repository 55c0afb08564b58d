"""A judge is asked through one function, while it is trusted, and only its own verdicts count."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from shared.foundation import config, errors
from shared.platform.resources import Resources, open_resources
from shared.platform.spend import budget_queries
from shared.platform.spend.budget import Period
from shared.platform.spend.charge import Payer
from shared.platform.spend.table import charge
from shared.verification.claim import Claim, Evidence, Judgement, Verdict
from shared.verification.table import judge_calibration
from shared.verification.trusted_judge import find_trusted_judge
from tests.standins.behaviours import Status
from tests.standins.judge_server import JudgeServer
from tests.trusted_judges import trust_judge

Make = Callable[..., config.Settings]
SAID = Claim("Ada lives in Graz.", (Evidence("user", "2026-01-02", "I live in Graz."),))
UNSAID = Claim("Ada lives in Linz.", (Evidence("user", "2026-01-02", "I live in Graz."),))


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        server.labels[SAID.statement] = Verdict.SUPPORTED
        yield server


@pytest.fixture
async def resources(make_settings: Make, server: JudgeServer) -> AsyncIterator[Resources]:
    async with open_resources(make_settings(judge_base_url=server.url, judge_model="j")) as resources:
        yield resources


@pytest.fixture
def payer(tenant: str) -> Payer:
    return Payer(tenant, "a", "ada", "mining")


async def test_without_an_endpoint_there_is_no_judge(make_settings: Make) -> None:
    async with open_resources(make_settings()) as resources:
        assert resources.judge_model is None
        assert await find_trusted_judge(resources) is None


async def test_the_language_model_is_the_judge_unless_another_is_named(make_settings: Make) -> None:
    usual = {"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "m", "judge_timeout": 7}
    async with open_resources(make_settings(**usual)) as resources:
        assert resources.judge_model is resources.language_model
    for own in ({"judge_model": "j"}, {"judge_base_url": "http://127.0.0.1:9/j"}):
        async with open_resources(make_settings(**usual, **own)) as resources:
            assert resources.judge_model is not None
            assert resources.judge_model is not resources.language_model
            assert resources.judge_model.timeout == 7


async def test_one_that_is_not_measured_is_not_asked(resources: Resources) -> None:
    assert await find_trusted_judge(resources) is None


async def test_a_trusted_one_is_asked_and_its_payer_pays_for_the_purpose_judge(
    resources: Resources, server: JudgeServer, payer: Payer
) -> None:
    await trust_judge(resources)
    judge = await find_trusted_judge(resources)
    assert judge is not None
    assert judge.model == "j"
    supported, unsaid = await judge.ask(payer, [SAID, UNSAID])
    assert supported == Judgement(Verdict.SUPPORTED, "I live in Graz.")
    assert unsaid is not None
    assert unsaid.verdict is Verdict.NOT_SAID
    assert [claim.statement for claim in server.asked] == [SAID.statement, UNSAID.statement]
    async with resources.postgres.for_tenant(payer.tenant) as tx:
        [row] = await tx.execute(select(charge).where(charge.c.tenant == payer.tenant))
    assert (row.purpose, row.agent_id, row.user_id, row.state) == ("judge", "a", "ada", "settled")


async def test_trust_is_of_one_endpoint_one_model_and_one_text_of_the_directive(
    make_settings: Make, resources: Resources, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await trust_judge(resources)
    other_settings = (
        {"judge_base_url": server.url, "judge_model": "k"},
        {"judge_base_url": f"{server.url}/other", "judge_model": "j"},
    )
    for settings in other_settings:
        async with open_resources(make_settings(**settings)) as other:
            assert await find_trusted_judge(other) is None
    with_password = server.url.replace("//", "//ada:secret@") + "?key=secret"
    async with open_resources(make_settings(judge_base_url=with_password, judge_model="j")) as same:
        assert await find_trusted_judge(same) is not None
    monkeypatch.setattr("shared.verification.judge.directive_version", lambda: "another")
    assert await find_trusted_judge(resources) is None


async def test_trust_ends_when_two_measurements_were_missed(resources: Resources) -> None:
    await trust_judge(resources)
    for days, is_trusted in ((13, True), (15, False)):
        async with resources.postgres.across_tenants() as tx:
            calibrated_at = func.now() - timedelta(days=days)
            assert resources.judge_model is not None
            of_judge = judge_calibration.c.endpoint == resources.judge_model.address_digest
            await tx.execute(update(judge_calibration).where(of_judge).values(calibrated_at=calibrated_at))
        assert (await find_trusted_judge(resources) is not None) is is_trusted


async def test_verdicts_of_another_model_do_not_count_and_end_the_trust(
    resources: Resources, server: JudgeServer, payer: Payer
) -> None:
    await trust_judge(resources)
    judge = await find_trusted_judge(resources)
    assert judge is not None
    server.model = "j-2"
    assert await judge.ask(payer, [SAID] * 45) == [None] * 45
    assert len(server.judge_calls) == 1
    assert await find_trusted_judge(resources) is None


@pytest.mark.parametrize("name", ["", "a\x00b", "x" * 257, "a\nb"])
async def test_a_name_that_can_not_be_stored_is_none(
    resources: Resources, server: JudgeServer, payer: Payer, name: str
) -> None:
    await trust_judge(resources)
    judge = await find_trusted_judge(resources)
    assert judge is not None
    server.model = name
    assert await judge.ask(payer, [SAID]) == [Judgement(Verdict.SUPPORTED, "I live in Graz.")]
    assert await find_trusted_judge(resources) == judge


async def test_what_an_earlier_calibration_says_does_not_end_the_trust_of_a_later_one(
    resources: Resources, server: JudgeServer, payer: Payer
) -> None:
    await trust_judge(resources)
    earlier = await find_trusted_judge(resources)
    await trust_judge(resources, model="j-2")
    later = await find_trusted_judge(resources)
    assert earlier is not None
    assert later is not None
    assert earlier.key != later.key
    server.model = "j-2"
    assert await earlier.ask(payer, [SAID]) == [None]
    assert await find_trusted_judge(resources) == later
    assert await later.ask(payer, [SAID]) == [Judgement(Verdict.SUPPORTED, "I live in Graz.")]


async def test_an_endpoint_that_is_away_and_a_budget_that_is_used_up_are_errors(
    resources: Resources, server: JudgeServer, payer: Payer
) -> None:
    await trust_judge(resources)
    judge = await find_trusted_judge(resources)
    assert judge is not None
    server.chat_default = Status(503)
    with pytest.raises(errors.Unavailable):
        await judge.ask(payer, [SAID])
    limits = {"limit_usd": None, "limit_tokens": 0, "allow_unpriced": True}
    async with resources.postgres.for_tenant(payer.tenant) as tx:
        await budget_queries.set_budget(tx, "purpose/judge", Period.DAY, limits)
    with pytest.raises(errors.OverBudget):
        await judge.ask(payer, [SAID])
    assert len(server.judge_calls) == 1
    assert await find_trusted_judge(resources) == judge
