"""How far the judge is trusted is shown: by a route, the doctor, metrics and `loci models check`."""

import re
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from services.commands import doctor_judge, judge_check
from shared.foundation import config
from shared.foundation.stages import ReasonCode
from shared.jobs import model_pauses
from shared.platform.resources import Resources, open_resources
from shared.platform.spend.charge import Payer
from shared.verification.claim import Claim, Evidence
from shared.verification.judge_report import read_judge_report
from shared.verification.trusted_judge import find_trusted_judge
from tests.conftest import Gateway, running_gateway
from tests.databases import empty_tables
from tests.standins.asked_claims import by_label, yes_to_all
from tests.standins.behaviours import Status
from tests.standins.judge_server import JudgeServer
from tests.trusted_judges import trust_judge
from workers.enrichment.calibrate_judge import calibrate_if_due

Make = Callable[..., config.Settings]
Printed = pytest.CaptureFixture[str]
SAID = Claim("Ada lives in Graz.", (Evidence("user", "2026-01-02", "I live in Graz."),))


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


@pytest.fixture
async def gateway(
    make_settings: Make, database: dict[str, str], server: JudgeServer, tenant: str
) -> AsyncIterator[Gateway]:
    await empty_tables(database["postgres_url"], "judge_calibration", "judge_calibration_spend")
    address = server.url.replace("//", "//ada:secret@").replace("/v1", "/hidden/../v1") + "?key=secret"
    models = {"llm_base_url": address, "llm_model": "m", "judge_base_url": server.url, "judge_model": "j"}
    async with running_gateway(make_settings(**database, **models), tenant) as gateway:
        yield gateway


async def test_the_route_shows_each_model_and_what_was_measured_of_the_judge(
    gateway: Gateway, server: JudgeServer
) -> None:
    reader = await gateway.new_client(rights=("read",), agent_id="a", user_id="ada")
    response = await reader.get("/v1/models")
    host = re.findall("//([^/]*)/", server.url)[0]
    language, judge, embedding = response.json()["models"]
    nothing = {"trusted": None, "calibrated_at": None, "figures": None}
    assert language == {
        "purpose": "language",
        "endpoint": host,
        "model": "m",
        "state": "configured",
        **nothing,
    }
    assert embedding["state"] == "not_configured"
    assert (judge["state"], judge["trusted"], judge["figures"]) == ("measuring", False, None)
    assert not {"secret", "hidden", "ada"} & set(re.findall(r"\w+", response.text))
    await calibrate_if_due(gateway.resources)
    judge = (await reader.get("/v1/models")).json()["models"][1]
    assert (judge["state"], judge["trusted"], judge["model"], judge["endpoint"]) == (
        "trusted",
        True,
        "j",
        host,
    )
    assert judge["figures"]["precision"] == {"right": 80, "count": 80}
    assert judge["figures"]["by_language"]["de"]["count"] > 0
    assert judge["figures"]["by_type"]["denial"]["count"] >= 8
    assert judge["calibrated_at"]


async def test_one_that_is_not_trusted_or_was_withdrawn_says_so(
    gateway: Gateway, server: JudgeServer, tenant: str
) -> None:
    server.verdict_of = yes_to_all
    await calibrate_if_due(gateway.resources)
    judge = (await gateway.client.get("/v1/models")).json()["models"][1]
    assert (judge["state"], judge["trusted"]) == ("not_trusted", False)
    assert judge["figures"]["precision"] == {"right": 80, "count": 160}
    await trust_judge(gateway.resources)
    trusted = await find_trusted_judge(gateway.resources)
    assert trusted is not None
    server.model = "j-2"
    await trusted.ask(Payer(tenant, "a", None, "mining"), [SAID])
    judge = (await gateway.client.get("/v1/models")).json()["models"][1]
    assert (judge["state"], judge["trusted"], judge["figures"]) == ("measuring", False, None)


async def test_a_model_that_a_stage_waits_for_is_paused(gateway: Gateway) -> None:
    resources = gateway.resources
    assert resources.language_model is not None
    async with resources.postgres.across_tenants() as tx:
        identity = resources.language_model.identity
        await model_pauses.begin(tx, "enrichment", identity, ReasonCode.KEY_REFUSED, 60)
    language, judge, _ = (await gateway.client.get("/v1/models")).json()["models"]
    assert (language["state"], judge["state"]) == ("paused", "measuring")


async def test_metrics_say_whether_it_is_trusted_and_count_verdicts(
    gateway: Gateway, server: JudgeServer, tenant: str
) -> None:
    assert await sample(gateway, "loci_judge_trusted") == 0
    await calibrate_if_due(gateway.resources)
    assert await sample(gateway, "loci_judge_trusted") == 1
    judge = await find_trusted_judge(gateway.resources)
    assert judge is not None
    await judge.ask(Payer(tenant, "a", None, "mining"), [SAID, SAID])
    server.chat_default = Status(413)
    await judge.ask(Payer(tenant, "a", None, "mining"), [SAID])
    assert await sample(gateway, 'loci_judge_verdicts_total{verdict="not_said"}') == 2
    assert await sample(gateway, 'loci_judge_verdicts_total{verdict="none"}') == 1
    name = 'loci_spend_tokens_total{model="j",purpose="judge_calibration",type="input"}'
    assert await sample(gateway, name) > 1000


async def sample(gateway: Gateway, name: str) -> float:
    """Return a sample of the metrics."""
    text = (await gateway.client.get("/metrics")).text
    return float(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[-1])


async def test_without_a_judge_there_is_no_sample(make_settings: Make, tenant: str) -> None:
    async with running_gateway(make_settings(), tenant) as gateway:
        lines = (await gateway.client.get("/metrics")).text.splitlines()
        assert not [line for line in lines if line.startswith("loci_judge_trusted")]
        models = (await gateway.client.get("/v1/models")).json()["models"]
        assert [model["state"] for model in models] == ["not_configured"] * 3


async def doctor_lines(resources: Resources, capsys: Printed) -> list[str]:
    doctor_judge.print_report(await read_judge_report(resources))
    return capsys.readouterr().out.splitlines()


async def test_the_doctor_names_each_limit_that_is_missed_and_the_languages(
    gateway: Gateway, server: JudgeServer, capsys: Printed
) -> None:
    [line] = await doctor_lines(gateway.resources, capsys)
    assert line.startswith("judge j at 127.0.0.1")
    assert line.endswith("is not trusted yet; it has answered 0 of 160 labelled questions")
    server.verdict_of = yes_to_all
    await calibrate_if_due(gateway.resources)
    first, *reasons, last = await doctor_lines(gateway.resources, capsys)
    assert first.endswith("is not trusted: its verdicts decide nothing")
    assert "- of what it calls supported 80 of 160 are right, where 95.0% must be" in reasons
    assert any(reason.startswith("- of the pairs 'denial'") for reason in reasons)
    assert re.search(r"right by language: de \d+ of 20, en", last)
    await trust_judge(gateway.resources)
    first, last = await doctor_lines(gateway.resources, capsys)
    assert first.endswith("is trusted")
    async with open_resources(
        gateway.resources.settings.model_copy(
            update={"llm_base_url": None, "judge_base_url": None, "judge_model": None}
        )
    ) as without:
        assert await doctor_lines(without, capsys) == []


async def test_the_command_stores_what_it_has_measured_of_the_configured_judge(
    gateway: Gateway, server: JudgeServer, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    settings = gateway.resources.settings
    assert settings.postgres_url is not None
    monkeypatch.setenv("LOCI_POSTGRES_URL", settings.postgres_url.get_secret_value())
    monkeypatch.setenv("LOCI_JUDGE_BASE_URL", server.url)
    monkeypatch.setenv("LOCI_JUDGE_MODEL", "j")
    monkeypatch.setenv("LOCI_DATA_DIR", str(settings.data_dir))

    async def check(*given: str | None) -> int:
        return await judge_check._check(config.load(), is_configured_judge=not any(given))

    server.verdict_of = by_label
    assert await check("an endpoint") == 0
    assert await find_trusted_judge(gateway.resources) is None
    assert await check() == 0
    assert "stored: workers go by this" in capsys.readouterr().out
    assert await find_trusted_judge(gateway.resources) is not None
    server.verdict_of = yes_to_all
    assert await check() == 1
    assert await find_trusted_judge(gateway.resources) is None
    assert await calibrate_if_due(gateway.resources) == 0
