"""Issue 5, point 2: nothing may speak with anything, but for the edges of the picture."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.deploy.kustomize import Object
from tests.deploy.variants import objects

Labels = dict[str, str]
_STORE_PORTS = {"postgres": 5432, "redis": 6379, "qdrant": 6333}
# Who may speak with which store: the picture of the README.
_EDGES: dict[str, set[str]] = {
    "gateway": {"postgres", "redis", "qdrant"},
    "enrichment": {"postgres", "redis", "qdrant"},
    "embedding": {"postgres", "redis", "qdrant"},
    "dream": {"postgres", "redis", "qdrant"},
    "sweep": {"postgres", "redis", "qdrant"},
    "beat": {"redis"},
    "flower": {"redis"},
    "migrate": {"postgres"},
    **{store: set() for store in _STORE_PORTS},
}


def _policies(rendered: Iterable[Object]) -> list[Object]:
    return [one["spec"] for one in rendered if one["kind"] == "NetworkPolicy"]


def _pods(rendered: Iterable[Object]) -> dict[str, Labels]:
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in rendered
        if one["kind"] in {"Deployment", "StatefulSet", "Job"}
    ]
    return {one["app.kubernetes.io/component"]: one for one in labels}


def _selects(selector: dict[str, Any], labels: Labels) -> bool:
    matches = selector.get("matchLabels", {}).items() <= labels.items()
    return matches and all(
        labels.get(one["key"]) in one["values"] for one in selector.get("matchExpressions", [])
    )


def _ports(rule: dict[str, Any]) -> set[int]:
    return {port["port"] for port in rule["ports"]}


def test_every_pod_is_closed_both_ways_unless_an_edge_opens_it(rendered: list[Object]) -> None:
    denied = [p for p in _policies(rendered) if not {"ingress", "egress"} & set(p)]
    for labels in _pods(rendered).values():
        closed = {way for p in denied if _selects(p["podSelector"], labels) for way in p["policyTypes"]}
        assert closed == {"Ingress", "Egress"}


def test_every_pod_may_ask_for_names(rendered: list[Object]) -> None:
    for labels in _pods(rendered).values():
        opened = [
            _ports(rule)
            for policy in _policies(rendered)
            if _selects(policy["podSelector"], labels)
            for rule in policy.get("egress", [])
        ]
        assert {53} in opened


@pytest.mark.parametrize("name", ["small", "small-with-components"])
def test_with_bundled_stores_each_edge_is_open_at_both_ends_and_no_other(name: str) -> None:
    rendered = objects(name)
    pods, policies = _pods(rendered), _policies(rendered)
    assert set(pods) == set(_EDGES)
    found = {
        one: {
            store
            for store, port in _STORE_PORTS.items()
            if _open(policies, "egress", pods[one], pods[store], port)
            and _open(policies, "ingress", pods[store], pods[one], port)
        }
        for one in pods
    }
    assert found == _EDGES


def _open(policies: list[Any], way: str, pod: Labels, peer: Labels, port: int) -> bool:
    end = "to" if way == "egress" else "from"
    return any(
        port in _ports(rule) and any(_is_peer(one, peer) for one in rule[end])
        for policy in policies
        if _selects(policy["podSelector"], pod)
        for rule in policy.get(way, [])
    )


def _is_peer(end: dict[str, Any], labels: Labels) -> bool:
    """Tell whether an end of a rule means a pod of our own namespace."""
    return set(end) == {"podSelector"} and _selects(end["podSelector"], labels)


@pytest.mark.parametrize("name", ["production", "production-with-components"])
def test_with_stores_elsewhere_each_process_reaches_the_ports_of_its_own(name: str) -> None:
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
        assert reached == stores | models | {53}, component


def test_only_the_gateway_is_reached_from_outside_and_by_name_of_namespace(rendered: list[Object]) -> None:
    """KEDA asks a bundled Postgres: the one store that another namespace may reach."""
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
