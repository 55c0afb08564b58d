"""Every metric is reported, documented and used by the dashboard."""

import ast
import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from services.gateway.fleet_metrics import FLEET_COUNTERS
from services.local import ports
from shared.foundation import config, stages
from shared.jobs import counters as fleet_counters
from shared.jobs.table import job
from tests import draining
from tests.conftest import Gateway, running_gateway
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

Make = Callable[..., config.Settings]
_ROW = re.compile(r"^\| `(loci_\w+)` \|", re.MULTILINE)
_METRIC_NAME = re.compile(r"\bloci_\w+")
_PARTS = re.compile(r"_(?:bucket|sum|count)$")


async def _metrics_text(gateway: Gateway) -> str:
    return (await gateway.client.get("/metrics")).text


def _names(text: str) -> set[str]:
    """Return the names of all declared metrics, also of those without a sample."""
    return set(re.findall(r"^# TYPE (loci_\w+) ", text, re.MULTILINE))


async def test_the_documented_metrics_are_exactly_the_reported_ones(
    gateway: Gateway, repository: Path
) -> None:
    table = _ROW.findall((repository / "deploy" / "grafana" / "README.md").read_text())
    assert len(table) == len(set(table))
    assert set(table) == _names(await _metrics_text(gateway))


async def test_the_dashboard_uses_every_reported_metric_and_only_existing_labels(
    gateway: Gateway, repository: Path
) -> None:
    await gateway.client.post("/v1/memories", json={"content": "There is something to count."})
    async with gateway.resources.postgres.across_tenants() as tx:
        for name, counter in FLEET_COUNTERS.items():
            await fleet_counters.increment(tx, name, {":".join(counter.labels): 1})
    text = await _metrics_text(gateway)
    labels = {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    board = json.loads((repository / "deploy" / "grafana" / "loci.json").read_text())
    rows = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    assert rows == ["Requests", "Lag", "Backlog", "Workers", "Dreams", "Spend", "Degraded"]
    used_names = set()
    for expression in _expressions(board):
        names = set(_METRIC_NAME.findall(expression))
        assert {_PARTS.sub("", name) for name in names} <= _names(text), expression
        grouped = {label for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(", ")}
        for name in names & labels.keys():
            assert grouped <= labels[name], expression
        used_names |= {_PARTS.sub("", name) for name in names}
    assert used_names == _names(text), "every metric is on the dashboard"


def _expressions(board: dict[str, Any]) -> Iterator[str]:
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))


def test_every_fleet_counter_that_a_process_increments_is_reported(repository: Path) -> None:
    """A counter that is not reported would be incremented for nothing."""
    incremented = {
        name
        for folder in ("shared", "workers", "services")
        for path in (repository / folder).rglob("*.py")
        for name in _incremented_names(ast.parse(path.read_text()))
    }
    constants = {name: value for name, value in vars(fleet_counters).items() if isinstance(value, str)}
    constants["USED_RATIO_METRIC"] = "budget_used_ratio"
    assert {constants.get(name, name) for name in incremented} == {
        *FLEET_COUNTERS,
        fleet_counters.TIME_TO_SEARCHABLE,
        fleet_counters.TIME_TO_SEARCHABLE_SUM,
    }


_DETACHED_INCREMENTS = ("fleet_counters.increment_detached", "increment_detached")
_INCREMENTS = ("fleet_counters.increment", "counters.increment", "fleet_counters.set_gauge")


def _incremented_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _INCREMENTS:
            yield _constant(node.args[1])
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _DETACHED_INCREMENTS:
            counters = node.args[1]
            assert isinstance(counters, ast.Dict), "the names must be readable from the source"
            yield from (_constant(key) for key in counters.keys if key is not None)


def _constant(name: ast.expr) -> str:
    return str(name.value) if isinstance(name, ast.Constant) else ast.unparse(name)


async def test_lag_and_backlog_follow_the_jobs_of_a_stage_and_are_zero_without_any(
    make_settings: Make, tenant: str, models: ModelServer
) -> None:
    models.chat_default = Reply("[]")
    settings = make_settings(apart=True, llm_base_url=models.url, llm_model="m")
    async with running_gateway(settings, tenant) as gateway:
        before = _samples(await _metrics_text(gateway))
        assert {before[f'loci_jobs_oldest_age_seconds{{stage="{name}"}}'] for name in stages.STAGES} == {0.0}
        await gateway.client.post("/v1/memories", json={"content": "To be enriched."})
        pending = _samples(await _metrics_text(gateway))
        assert pending['loci_jobs_oldest_age_seconds{stage="enrich"}'] > 0
        assert pending['loci_queue_backlog_jobs{queue="enrichment"}'] == 1
        await draining.drain(gateway.resources)
        after = _samples(await _metrics_text(gateway))
    assert after['loci_jobs_oldest_age_seconds{stage="enrich"}'] == 0
    assert after['loci_queue_backlog_jobs{queue="enrichment"}'] == 0
    assert after['loci_job_claims_total{kind="enrich"}'] == 1
    assert 'loci_job_retries_total{kind="enrich"}' not in after


async def test_every_claim_after_the_first_counts_as_a_retry(
    make_settings: Make, tenant: str, models: ModelServer
) -> None:
    models.chat_default = Reply("[]")
    settings = make_settings(apart=True, llm_base_url=models.url, llm_model="m")
    async with running_gateway(settings, tenant) as gateway:
        await gateway.client.post("/v1/memories", json={"content": "Enriched at the second attempt."})
        async with gateway.resources.postgres.across_tenants() as tx:
            await tx.execute(update(job).values(attempts=1))  # the worker of the first claim died
        await draining.drain(gateway.resources)
        samples = _samples(await _metrics_text(gateway))
    assert samples['loci_job_claims_total{kind="enrich"}'] == 1
    assert samples['loci_job_retries_total{kind="enrich"}'] == 1
    assert samples['loci_enrichments_total{kind="kept-raw"}'] == 1


async def test_a_process_that_freezes_while_it_counts_blocks_no_other(
    make_settings: Make, tenant: str
) -> None:
    async with running_gateway(make_settings(apart=True), tenant) as gateway:
        resources = gateway.resources
        async with resources.postgres.across_tenants() as blocked_connection:
            await fleet_counters.increment(
                blocked_connection, fleet_counters.TIME_TO_SEARCHABLE, {"keyword:0.05": 1}
            )
            async with asyncio.timeout(5):
                await fleet_counters.observe_time_to_searchable(resources.postgres, "keyword", [0.01])
        samples = _samples(await _metrics_text(gateway))
    assert samples['loci_time_to_searchable_seconds_count{channel="keyword"}'] == 1


async def test_the_time_to_searchable_is_counted_once_per_channel(
    make_settings: Make, tenant: str, models: ModelServer
) -> None:
    endpoint: dict[str, Any] = {"embedding_base_url": models.url, "embedding_model": "m"}
    async with running_gateway(make_settings(apart=True, **endpoint), tenant) as gateway:
        await gateway.client.post("/v1/memories", json={"content": "Found soon."})
        await draining.drain(gateway.resources)
        samples = _samples(await _metrics_text(gateway))
    for channel in ("keyword", "vector"):
        assert samples[f'loci_time_to_searchable_seconds_count{{channel="{channel}"}}'] == 1
        assert samples[f'loci_time_to_searchable_seconds_bucket{{channel="{channel}",le="+Inf"}}'] == 1
        assert samples[f'loci_time_to_searchable_seconds_bucket{{channel="{channel}",le="3600.0"}}'] == 1
        assert samples[f'loci_time_to_searchable_seconds_sum{{channel="{channel}"}}'] > 0


async def test_a_response_without_the_index_counts_as_degraded(make_settings: Make, tenant: str) -> None:
    settings = make_settings().model_copy(update={"qdrant_url": f"http://127.0.0.1:{ports.pick_free_port()}"})
    sample = 'loci_degraded_responses_total{missing="index"}'
    async with running_gateway(settings, tenant) as gateway:
        before = _samples(await _metrics_text(gateway)).get(sample, 0)
        response = await gateway.client.post("/v1/memories/search", json={"query": "lamps"})
        after = _samples(await _metrics_text(gateway))[sample]
    assert "index" in response.json()["degraded"]
    assert after == before + 1


def _samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}
