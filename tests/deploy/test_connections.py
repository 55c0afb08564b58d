"""All processes together open fewer connections than Postgres allows, also during a roll-out."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
import yaml
from sqlalchemy.pool import QueuePool

from shared.infra.postgres import create_engine
from tests.deploy.kustomize import Object
from tests.deploy.variants import DEPLOY, OVERLAYS, VARIANTS, objects

# The migration, KEDA's query for each of five queues and another of its operator, `pg_dump`, and a `loci …`
# command in a gateway's pod.
BESIDE = 1 + 5 * 2 + 1 + 8
RESERVED = 3  # Postgres's default superuser_reserved_connections
DEFAULT_MAXIMUM = 100  # of a Postgres that is not configured


def _connections(pool_size: int) -> int:
    """Return the most connections that a process with this LOCI_POSTGRES_POOL_SIZE opens."""
    pool = create_engine("postgresql://a@b/c", "", pool_size).sync_engine.pool
    assert isinstance(pool, QueuePool)
    return pool.size() + pool._max_overflow


def _per_pod(deployment: Object, settings: dict[str, str]) -> int:
    """Return the connections of one pod of a Deployment: none without the address of Postgres."""
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    variables = settings | {pair["name"]: pair.get("value", "") for pair in container.get("env", [])}
    if "LOCI_POSTGRES_URL" not in variables:
        return 0
    return _connections(int(variables["LOCI_POSTGRES_POOL_SIZE"]))


def _pods(rendered: Iterable[Object], deployment: Object) -> int:
    """Return the most pods that a Deployment has."""
    for scaler in rendered:
        spec: dict[str, Any] = scaler.get("spec", {})
        if spec.get("scaleTargetRef", {}).get("name") == deployment["metadata"]["name"]:
            return int(spec.get("maxReplicas") or spec["maxReplicaCount"])
    return int(deployment["spec"]["replicas"])


def _by_process(rendered: list[Object]) -> dict[str, tuple[int, int]]:
    """Return for each process that reads tables the connections per pod and the most pods."""
    [settings] = [m["data"] for m in rendered if m["kind"] == "ConfigMap" and "roles.sql" not in m["data"]]
    return {
        deployment["metadata"]["labels"]["app.kubernetes.io/component"]: (
            per_pod,
            _pods(rendered, deployment),
        )
        for deployment in rendered
        if deployment["kind"] == "Deployment" and (per_pod := _per_pod(deployment, settings))
    }


def _sum(rendered: list[Object]) -> int:
    """Return the most connections at once: in a roll-out, old pods end while as many new ones run."""
    return 2 * sum(per_pod * pods for per_pod, pods in _by_process(rendered).values()) + BESIDE


@pytest.mark.parametrize("name", [name for name in VARIANTS if name.startswith("small")])
def test_all_pools_fit_into_the_bundled_postgres(name: str) -> None:
    rendered = objects(name)
    [server] = [
        m for m in rendered if m["kind"] == "StatefulSet" and m["metadata"]["name"] == "loci-postgres"
    ]
    [container] = server["spec"]["template"]["spec"]["containers"]
    [allowed] = re.findall(r"max_connections=(\d+)", " ".join(container["args"]))
    assert len(_by_process(rendered)) == 7
    assert _sum(rendered) <= int(allowed) - RESERVED


def test_all_pools_fit_into_the_postgres_of_compose() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert "command" not in services["postgres"], "it has the default of max_connections"
    variables = [service.get("environment", {}) for service in services.values()]
    sizes = [int(v["LOCI_POSTGRES_POOL_SIZE"]) for v in variables if "LOCI_QDRANT_URL" in v]
    assert len(sizes) == 7
    assert 2 * sum(map(_connections, sizes)) + BESIDE <= DEFAULT_MAXIMUM - RESERVED


def test_the_table_of_the_readme_is_the_sum_of_the_manifests() -> None:
    rows = re.findall(r"^\| (.+?) +((?:\| *[\d *]*)+)\|$", (DEPLOY / "README.md").read_text(), re.MULTILINE)
    written = {name: [int(number) for number in re.findall(r"\d+", cells)] for name, cells in rows}
    by_overlay = [_by_process(objects(overlay)) for overlay in OVERLAYS]
    for process, (per_pod, _) in by_overlay[0].items():
        computed = [(p[process][1], per_pod * p[process][1]) for p in by_overlay]
        assert written[process] == [per_pod, *(number for pair in computed for number in pair)], process
    maxima = [sum(per_pod * pods for per_pod, pods in p.values()) for p in by_overlay]
    assert written["all pods at their maxima"] == maxima
    assert written["a roll-out, old and new pods at once"] == [2 * most for most in maxima]
    assert written["beside them"] == [BESIDE, BESIDE]
    assert written["**together**"] == [_sum(objects(overlay)) for overlay in OVERLAYS]
