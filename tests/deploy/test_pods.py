"""How pods run, stop, are probed, are spread and scale."""

from collections.abc import Iterable
from typing import Any

import pytest
import yaml

from shared.foundation import config
from shared.memory.documents.document import MAX_FILE_BYTES
from tests.deploy.kustomize import Object, containers, pod_spec
from tests.deploy.variants import DEPLOY, objects

_PODS = {"Deployment", "StatefulSet", "Job"}
_WORKER_BYTES = 640 * 2**20
"""A worker with two of the largest texts in its memory."""
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def _of_kind(rendered: Iterable[Object], *kinds: str) -> dict[str, Object]:
    return {manifest["metadata"]["name"]: manifest for manifest in rendered if manifest["kind"] in kinds}


def _labels(manifest: Object) -> dict[str, str]:
    labels: dict[str, str] = manifest["spec"]["template"]["metadata"]["labels"]
    return labels


def _within(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def test_every_pod_keeps_to_the_restricted_profile_and_writes_no_root_file_system(
    rendered: list[Object],
) -> None:
    pods = _of_kind(rendered, *_PODS)
    assert len(pods) >= 8
    for name, manifest in pods.items():
        spec = manifest["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] > 0
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert all({"emptyDir", "configMap"} & set(volume) for volume in spec.get("volumes", []))
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "runAsNonRoot": True,
                "capabilities": {"drop": ["ALL"]},
            }
    [namespace] = _of_kind(rendered, "Namespace").values()
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_no_pod_gets_a_token_of_the_cluster(rendered: list[Object]) -> None:
    accounts = _of_kind(rendered, "ServiceAccount")
    for manifest in _of_kind(rendered, *_PODS).values():
        spec = manifest["spec"]["template"]["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["serviceAccountName"] in accounts
    assert not _of_kind(rendered, "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")


def test_every_container_says_what_it_needs_and_the_most_memory_it_gets(rendered: list[Object]) -> None:
    for container in containers(rendered):
        resources = container["resources"]
        assert set(resources["requests"]) == {"cpu", "memory"}
        assert "memory" in resources["limits"]
        assert _bytes(resources["limits"]["memory"]) >= _bytes(resources["requests"]["memory"])


def _bytes(quantity: str) -> int:
    return int(quantity[:-2]) * {"Mi": 2**20, "Gi": 2**30}[quantity[-2:]]


def test_the_worker_of_documents_has_room_for_its_parsers_and_files_and_for_itself(
    rendered: list[Object],
) -> None:
    settings = config.load()
    spec = _of_kind(rendered, "Deployment")["loci-documents"]["spec"]["template"]["spec"]
    [container] = spec["containers"]
    parsers = int(container["command"][container["command"].index("--concurrency") + 1])
    needed = parsers * settings.document_parse_memory_mb * 2**20 + _WORKER_BYTES
    assert _bytes(container["resources"]["limits"]["memory"]) >= needed
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["documents"]
    assert service["command"] == container["command"][1:]
    assert int(service["mem_limit"].removesuffix("m")) * 2**20 >= needed
    [room] = [volume["emptyDir"]["sizeLimit"] for volume in spec["volumes"] if volume["name"] == "tmp"]
    assert _bytes(room) >= parsers * MAX_FILE_BYTES


def test_a_gateway_has_room_for_many_uploads_at_once(rendered: list[Object]) -> None:
    spec = _of_kind(rendered, "Deployment")["loci-gateway"]["spec"]["template"]["spec"]
    [room] = [volume["emptyDir"]["sizeLimit"] for volume in spec["volumes"] if volume["name"] == "tmp"]
    assert _bytes(room) >= 32 * MAX_FILE_BYTES


def test_every_deployment_has_probes_a_grace_period_and_a_disruption_budget(rendered: list[Object]) -> None:
    budgets = [
        manifest["spec"]["selector"]["matchLabels"]
        for manifest in _of_kind(rendered, "PodDisruptionBudget").values()
    ]
    for name, manifest in _of_kind(rendered, "Deployment").items():
        spec = manifest["spec"]["template"]["spec"]
        [container] = spec["containers"]
        assert set(_PROBES) <= set(container), name
        assert spec["terminationGracePeriodSeconds"] >= 30, name
        assert sum(_within(budget, _labels(manifest)) for budget in budgets) == 1, name


def test_workers_have_more_time_to_stop_than_any_task_may_take(rendered: list[Object]) -> None:
    settings = config.load()
    longest = max(settings.job_lease * 1.5 + 5, settings.dream_lease)
    for manifest in _workers(rendered):
        assert manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > longest


def _workers(rendered: Iterable[Object]) -> list[Object]:
    workers = [
        manifest for manifest in _of_kind(rendered, "Deployment").values() if "loci/role" in _labels(manifest)
    ]
    assert len(workers) >= 4
    return workers


def test_a_worker_is_probed_by_its_heartbeat_which_may_wait_for_the_longest_task(
    rendered: list[Object],
) -> None:
    settings = config.load()
    for manifest in _workers(rendered):
        for probe in _PROBES:
            assert manifest["spec"]["template"]["spec"]["containers"][0][probe]["exec"]["command"] == [
                "loci",
                "alive",
            ]
    default = 300  # of `loci alive --max-age`
    assert default > settings.job_lease * 1.5 + 5


def test_a_liveness_probe_checks_no_database(rendered: list[Object]) -> None:
    """Otherwise a database that is unavailable would restart all processes."""
    for manifest in _of_kind(rendered, "Deployment").values():
        probe = manifest["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]
        check = probe["httpGet"]["path"] if "httpGet" in probe else probe["exec"]["command"]
        assert check in ("/healthz", "/healthcheck", ["loci", "alive"])


def test_pods_that_read_tables_wait_for_the_migration_and_only_it_logs_in_as_the_owner(
    rendered: list[Object],
) -> None:
    owner = [
        name
        for name, manifest in _of_kind(rendered, *_PODS).items()
        if "loci-migrate" in _secrets(manifest["spec"]["template"])
    ]
    [job] = _of_kind(rendered, "Job")
    assert owner == [job]
    for manifest in _of_kind(rendered, "Deployment").values():
        spec = manifest["spec"]["template"]["spec"]
        reads = any(pair["name"] == "LOCI_POSTGRES_URL" for pair in spec["containers"][0].get("env", []))
        waits = [init["command"][1] for init in spec.get("initContainers", [])]
        assert waits == (["wait-for-schema"] if reads else [])


def _secrets(template: dict[str, Any]) -> set[str]:
    return {
        pair["valueFrom"]["secretKeyRef"]["name"]
        for container in template["spec"]["containers"]
        for pair in container.get("env", [])
        if "secretKeyRef" in pair.get("valueFrom", {})
    }


def test_beat_and_flower_have_the_address_of_the_broker_only(rendered: list[Object]) -> None:
    for name in ("loci-beat", "loci-flower"):
        [container] = _of_kind(rendered, "Deployment")[name]["spec"]["template"]["spec"]["containers"]
        variables = {pair["name"] for pair in container["env"]}
        assert variables <= {"LOCI_BROKER_URL", "LOCI_FLOWER_PASSWORD"}


def test_selectors_select_the_pods_they_mean_and_no_others(rendered: list[Object]) -> None:
    pods = _of_kind(rendered, *_PODS)
    for name, manifest in _of_kind(rendered, "Deployment", "StatefulSet").items():
        selector = manifest["spec"]["selector"]["matchLabels"]
        assert [other for other in pods if _within(selector, _labels(pods[other]))] == [name]
    for name, service in _of_kind(rendered, "Service").items():
        selected = [other for other in pods if _within(service["spec"]["selector"], _labels(pods[other]))]
        assert selected == [name]
        ports = {port["name"] for port in pods[name]["spec"]["template"]["spec"]["containers"][0]["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_no_deployment_has_two_scalers_or_a_scaler_and_replicas(rendered: list[Object]) -> None:
    deployments = _of_kind(rendered, "Deployment")
    scaled = [
        manifest["spec"]["scaleTargetRef"]["name"]
        for manifest in rendered
        if manifest["kind"] in {"HorizontalPodAutoscaler", "ScaledObject"}
    ]
    assert len(scaled) == len(set(scaled))
    assert set(scaled) == {
        name for name, manifest in deployments.items() if "replicas" not in manifest["spec"]
    }
    queues = {"enrichment", "embedding", "documents", "summary", "dream"}
    assert set(scaled) == {"loci-gateway"} | {f"loci-{queue}" for queue in queues}


@pytest.mark.parametrize("overlay", ["small", "production"])
def test_with_keda_queues_scale_by_their_backlog_and_without_by_processor_time(overlay: str) -> None:
    queues = {"loci-enrichment", "loci-embedding", "loci-documents", "loci-summary", "loci-dream"}
    plain, with_keda = objects(overlay), objects(f"{overlay}-with-components")
    assert set(_of_kind(plain, "HorizontalPodAutoscaler")) == {"loci-gateway", *queues}
    assert set(_of_kind(with_keda, "HorizontalPodAutoscaler")) == {"loci-gateway"}
    assert set(_of_kind(with_keda, "ScaledObject")) == queues


@pytest.mark.parametrize("overlay", ["small", "production"])
def test_both_scalers_of_a_queue_have_the_same_limits(overlay: str) -> None:
    plain = _of_kind(objects(overlay), "HorizontalPodAutoscaler")
    for name, scaled in _of_kind(objects(f"{overlay}-with-components"), "ScaledObject").items():
        specification = plain[name]["spec"]
        limits = (specification["minReplicas"], specification["maxReplicas"])
        assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == limits


@pytest.mark.parametrize("overlay", ["small", "production"])
def test_keda_takes_over_the_scaler_of_the_same_deployment_that_is_in_the_cluster(overlay: str) -> None:
    """Applying the component does not delete that scaler."""
    existing = _of_kind(objects(overlay), "HorizontalPodAutoscaler")
    for scaled in _of_kind(objects(f"{overlay}-with-components"), "ScaledObject").values():
        name = scaled["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["name"]
        assert existing[name]["spec"]["scaleTargetRef"]["name"] == scaled["spec"]["scaleTargetRef"]["name"]
        assert scaled["metadata"]["annotations"]["scaledobject.keda.sh/transfer-hpa-ownership"] == "true"


def test_in_production_there_are_two_pods_of_each_process_and_they_are_spread() -> None:
    rendered = objects("production")
    for manifest in _of_kind(rendered, "HorizontalPodAutoscaler").values():
        assert manifest["spec"]["minReplicas"] >= 2
    for manifest in _of_kind(rendered, "Deployment").values():
        spread = manifest["spec"]["template"]["spec"]["topologySpreadConstraints"]
        keys = {constraint["topologyKey"] for constraint in spread}
        assert keys == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}
    assert not _of_kind(rendered, "StatefulSet")


def test_every_probe_and_service_uses_a_port_of_the_container(rendered: list[Object]) -> None:
    for spec in filter(None, map(pod_spec, rendered)):
        for container in spec["containers"]:
            ports = {port["name"] for port in container.get("ports", [])}
            probed = {container[p]["httpGet"]["port"] for p in _PROBES if "httpGet" in container.get(p, {})}
            assert probed <= ports
