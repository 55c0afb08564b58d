"""All traffic between pods is denied except for the listed connections."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.deploy.kustomize import Object
from tests.deploy.variants import objects

Labels = dict[str, str]
COLLECTOR_PORT = 4318  # OTLP over HTTP, the only protocol that Loci exports
_STORE_PORTS = {"postgres": 5432, "redis": 6379, "qdrant": 6333}
# Which process may connect to which database.
_EDGES: dict[str, set[str]] = {
    "gateway": {"postgres", "redis", "qdrant"},
    "enrichment": {"postgres", "redis", "qdrant"},
    "embedding": {"postgres", "redis", "qdrant"},
    "documents": {"postgres", "redis", "qdrant"},
    "summary": {"postgres", "redis", "qdrant"},
    "dream": {"postgres", "redis", "qdrant"},
    "sweep": {"postgres", "redis", "qdrant"},
    "beat": {"redis"},
    "flower": {"redis"},
    "migrate": {"postgres"},
    **{store: set() for store in _STORE_PORTS},
}


def _policies(rendered: Iterable[Object]) -> list[Object]:
    return [manifest["spec"] for manifest in rendered if manifest["kind"] == "NetworkPolicy"]


def _pods(rendered: Iterable[Object]) -> dict[str, Labels]:
    labels = [
        manifest["spec"]["template"]["metadata"]["labels"]
        for manifest in rendered
        if manifest["kind"] in {"Deployment", "StatefulSet", "Job"}
    ]
    return {pod_labels["app.kubernetes.io/component"]: pod_labels for pod_labels in labels}


def _selects(selector: dict[str, Any], labels: Labels) -> bool:
    matches = selector.get("matchLabels", {}).items() <= labels.items()
    return matches and all(
        labels.get(expression["key"]) in expression["values"]
        for expression in selector.get("matchExpressions", [])
    )


def _ports(rule: dict[str, Any]) -> set[int]:
    return {port["port"] for port in rule["ports"]}


def test_every_pod_denies_traffic_in_both_directions_by_default(rendered: list[Object]) -> None:
    denied = [p for p in _policies(rendered) if not {"ingress", "egress"} & set(p)]
    for labels in _pods(rendered).values():
        closed = {way for p in denied if _selects(p["podSelector"], labels) for way in p["policyTypes"]}
        assert closed == {"Ingress", "Egress"}


def test_every_pod_may_resolve_names(rendered: list[Object]) -> None:
    for labels in _pods(rendered).values():
        opened = [
            _ports(rule)
            for policy in _policies(rendered)
            if _selects(policy["podSelector"], labels)
            for rule in policy.get("egress", [])
        ]
        assert {53} in opened


@pytest.mark.parametrize("name", ["small", "small-with-components"])
def test_with_bundled_databases_each_connection_is_allowed_at_both_ends_and_no_other(name: str) -> None:
    rendered = objects(name)
    pods, policies = _pods(rendered), _policies(rendered)
    assert set(pods) == set(_EDGES)
    open_edges = {
        component: {
            store
            for store, port in _STORE_PORTS.items()
            if _open(policies, "egress", pods[component], pods[store], port)
            and _open(policies, "ingress", pods[store], pods[component], port)
        }
        for component in pods
    }
    assert open_edges == _EDGES


def _open(policies: list[Any], way: str, pod: Labels, peer: Labels, port: int) -> bool:
    end = "to" if way == "egress" else "from"
    return any(
        port in _ports(rule) and any(_is_peer(peer_rule, peer) for peer_rule in rule[end])
        for policy in policies
        if _selects(policy["podSelector"], pod)
        for rule in policy.get(way, [])
    )


def _is_peer(end: dict[str, Any], labels: Labels) -> bool:
    """Tell whether an end of a rule selects a pod in the same namespace."""
    return set(end) == {"podSelector"} and _selects(end["podSelector"], labels)


@pytest.mark.parametrize("name", ["production", "production-with-components"])
def test_with_external_databases_each_process_reaches_only_the_ports_it_needs(name: str) -> None:
    rendered = objects(name)
    for component, labels in _pods(rendered).items():
        reached = {
            port
            for policy in _policies(rendered)
            if _selects(policy["podSelector"], labels)
            for rule in policy.get("egress", [])
            for port in _ports(rule)
        }
        stores = {_STORE_PORTS[store] for store in _EDGES[component]}
        models = {443} if len(stores) == 3 else set()
        collector = {COLLECTOR_PORT} if name.endswith("components") and len(stores) == 3 else set()
        assert reached == stores | models | collector | {53}, component


@pytest.mark.parametrize("name", ["small-with-components", "production-with-components"])
def test_gateways_and_workers_reach_the_collector_that_the_component_names(name: str) -> None:
    rendered = objects(name)
    [endpoint] = [
        manifest["data"]["LOCI_OTLP_ENDPOINT"]
        for manifest in rendered
        if "LOCI_OTLP_ENDPOINT" in manifest.get("data", {})
    ]
    service, namespace = (urlsplit(endpoint).hostname or "").split(".")
    [policy] = [m["spec"] for m in rendered if m["metadata"]["name"] == "to-collector"]
    [rule] = policy["egress"]
    assert service
    assert _ports(rule) == {urlsplit(endpoint).port} == {COLLECTOR_PORT}
    assert rule["to"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}]
    traced = {pod for pod, labels in _pods(rendered).items() if _selects(policy["podSelector"], labels)}
    assert traced == {"gateway", "enrichment", "embedding", "documents", "summary", "dream", "sweep"}


def test_only_the_gateway_is_reached_from_outside_and_by_name_of_namespace(rendered: list[Object]) -> None:
    """A bundled Postgres is the only database that another namespace may reach, because KEDA queries it."""
    for policy in _policies(rendered):
        for rule in policy.get("ingress", []):
            if all(set(end) == {"podSelector"} for end in rule["from"]):
                continue
            component = policy["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
            assert component in {"gateway", "postgres"}
            labels = [end["namespaceSelector"]["matchLabels"] for end in rule["from"]]
            assert all(labels)
            if component == "postgres":
                assert labels == [{"kubernetes.io/metadata.name": "keda"}]


def test_no_process_reaches_the_metadata_of_the_cloud(rendered: list[Object]) -> None:
    blocks = [
        end["ipBlock"]
        for policy in _policies(rendered)
        for rule in policy.get("egress", [])
        for end in rule["to"]
        if "ipBlock" in end
    ]
    assert blocks
    for block in blocks:
        assert block["cidr"].startswith("10.") or "169.254.0.0/16" in block["except"]
