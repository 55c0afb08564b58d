"""Issue 5, points 2 and 7: alerts ask for metrics that exist and lead to what they mean."""

import re
from collections.abc import Callable
from pathlib import Path

from shared.foundation import config
from shared.jobs import counters as fleet_counters
from tests.conftest import serving
from tests.deploy.kustomize import Object
from tests.deploy.variants import objects

README = Path(__file__).parents[2] / "deploy" / "README.md"


def _alerts() -> list[Object]:
    [rule] = [one for one in objects("small-with-components") if one["kind"] == "PrometheusRule"]
    alerts: list[Object] = rule["spec"]["groups"][0]["rules"]
    return alerts


def test_every_alert_leads_to_its_own_heading_in_the_readme_and_no_heading_is_left_over() -> None:
    _, _, part = README.read_text().partition("## What each alert means\n")
    headings = re.findall(r"^### (\w+)$", part, re.MULTILINE)
    assert [one["alert"] for one in _alerts()] == headings
    for one in _alerts():
        assert one["annotations"]["runbook"] == f"deploy/README.md#{one['alert'].lower()}"
        assert one["annotations"]["summary"]


async def test_every_metric_that_an_alert_asks_for_is_told_by_the_gateway(
    make_settings: Callable[..., config.Settings], tenant: str, repository: Path
) -> None:
    asked = {name for one in _alerts() for name in re.findall(r"\bloci_\w+", one["expr"])}
    tallied = _tallied(repository)
    async with serving(make_settings(), tenant) as gateway:
        await gateway.client.post("/v1/memories", json={"content": "There is work."})
        async with gateway.resources.postgres.across_tenants() as connection:
            for name in tallied:
                await fleet_counters.increment(connection, name, {"kind": 1})
        text = (await gateway.client.get("/metrics")).text
    assert asked
    assert asked <= set(re.findall(r"^(loci_\w+)", text, re.MULTILINE))


def _tallied(repository: Path) -> set[str]:
    """Return the names of the counters that workers keep."""
    counted = re.compile(r'fleet_counters\.increment\(\w+, "(\w+)"')
    sources = "".join(path.read_text() for path in repository.glob("workers/**/*.py"))
    return set(counted.findall(sources))
