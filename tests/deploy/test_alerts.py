"""Alerts use metrics that exist, and each has a runbook in docs/OPERATIONS.md."""

import re
from collections.abc import Callable
from pathlib import Path

import yaml

from shared.foundation import config
from shared.jobs import counters as fleet_counters
from tests.conftest import running_gateway
from tests.deploy.kustomize import Object
from tests.deploy.variants import KUBERNETES, objects

OPERATIONS = Path(__file__).parents[2] / "docs" / "OPERATIONS.md"


def _alerts() -> list[Object]:
    [rule] = [
        manifest for manifest in objects("small-with-components") if manifest["kind"] == "PrometheusRule"
    ]
    alerts: list[Object] = rule["spec"]["groups"][0]["rules"]
    return alerts


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    _, _, part = OPERATIONS.read_text().partition("## What each alert means\n")
    headings = re.findall(r"^### (\w+)$", part, re.MULTILINE)
    assert [alert["alert"] for alert in _alerts()] == headings
    for alert in _alerts():
        assert alert["annotations"]["runbook"] == f"docs/OPERATIONS.md#{alert['alert'].lower()}"
        assert alert["annotations"]["summary"]


async def test_every_metric_of_an_alert_is_reported_by_the_gateway(
    make_settings: Callable[..., config.Settings], tenant: str, repository: Path
) -> None:
    metrics_used = {name for alert in _alerts() for name in re.findall(r"\bloci_\w+", alert["expr"])}
    counter_names = _fleet_counter_names(repository)
    async with running_gateway(make_settings(), tenant) as gateway:
        await gateway.client.post("/v1/memories", json={"content": "There is work."})
        async with gateway.resources.postgres.across_tenants() as tx:
            for name in counter_names:
                await fleet_counters.increment(tx, name, {"kind": 1})
        text = (await gateway.client.get("/metrics")).text
    assert metrics_used
    assert metrics_used <= set(re.findall(r"^(loci_\w+)", text, re.MULTILINE))


def _fleet_counter_names(repository: Path) -> set[str]:
    """Return the names of the fleet counters that workers increment."""
    increment = re.compile(r'fleet_counters\.increment\(\w+, "(\w+)"')
    sources = "".join(path.read_text() for path in repository.glob("workers/**/*.py"))
    return set(increment.findall(sources))


def test_the_operator_selects_the_monitor_and_the_rules_by_the_release_that_is_set() -> None:
    patch = yaml.safe_load((KUBERNETES / "components" / "monitoring" / "release.yaml").read_text())
    for variant in ("small-with-components", "production-with-components"):
        selected = [m for m in objects(variant) if m["kind"] in {"ServiceMonitor", "PrometheusRule"}]
        assert len(selected) == 2
        for manifest in selected:
            assert manifest["metadata"]["labels"] == patch[0]["value"]
            assert manifest["metadata"]["labels"]["release"]
