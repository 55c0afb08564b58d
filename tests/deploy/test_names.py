"""What the deployment names exists: commands, settings, paths, secrets and images."""

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from typer.core import TyperGroup

from services.cli import app as cli
from services.gateway.app import create_app
from shared.foundation import config, stages
from tests.deploy.kustomize import Object, containers, pod_spec
from tests.deploy.variants import VARIANTS, objects

DEPLOY = Path(__file__).parents[2] / "deploy"
SETTINGS = {f"LOCI_{field.upper()}" for field in config.Settings.model_fields}
# Used by roles.sql and not by Loci.
BY_POSTGRES = {"LOCI_OWNER_PASSWORD", "LOCI_LOGIN_PASSWORD", "LOCI_SCALER_PASSWORD", "LOCI_BACKUP_PASSWORD"}
# Typer contains its own copy of click and exports only subclasses of this class.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
STORES = {"postgres", "redis", "qdrant/qdrant"}


def _loci_containers(rendered: Iterable[Object]) -> list[Object]:
    return [container for container in containers(rendered) if container["image"].split(":")[0] not in STORES]


def _commands(container: Object) -> Iterator[list[str]]:
    yield container["command"]
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        if "exec" in container.get(name, {}):
            yield container[name]["exec"]["command"]


def _parse_command(words: list[str]) -> None:
    """Parse a command line as `loci` would, without running it; raise UsageError if it is invalid."""
    program, *rest = words
    assert program == "loci"
    command: Any = typer.main.get_command(cli)
    while isinstance(command, TyperGroup):
        assert rest, "a group is no command"
        context = command.context_class(command, info_name=program)
        _, command, rest = command.resolve_command(context, rest)
    command.make_context(command.name, list(rest))


def test_every_command_in_a_manifest_can_be_parsed_by_the_cli(rendered: list[Object]) -> None:
    commands = [words for container in _loci_containers(rendered) for words in _commands(container)]
    assert {words[1] for words in commands} == {
        *("serve", "work", "beat", "flower", "migrate", "wait-for-schema", "alive"),
    }
    for words in commands:
        _parse_command(words)


@pytest.mark.parametrize(
    "words", ["loci serv", "loci work --queue x", "loci work --concurrency 0", "loci keys"]
)
def test_an_invalid_command_is_refused(words: str) -> None:
    with pytest.raises((UsageError, AssertionError)):
        _parse_command(words.split())


def test_every_variable_of_loci_is_a_setting(rendered: list[Object]) -> None:
    maps = [
        set(manifest["data"])
        for manifest in rendered
        if manifest["kind"] == "ConfigMap" and "roles.sql" not in manifest["data"]
    ]
    variables = [
        {pair["name"] for pair in container.get("env", [])} for container in _loci_containers(rendered)
    ]
    named = set().union(*maps, *variables)
    assert len(named) > 8
    assert named <= SETTINGS


def test_the_settings_of_the_config_map_are_valid(
    rendered: list[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    [data] = [
        manifest["data"]
        for manifest in rendered
        if manifest["kind"] == "ConfigMap" and "roles.sql" not in manifest["data"]
    ]
    for name, value in data.items():
        monkeypatch.setenv(name, value)
    config.load()


def test_every_queue_has_workers_and_every_worker_reads_queues_that_exist(rendered: list[Object]) -> None:
    queues = {stages.queue_of(stage.task) for stage in stages.STAGES.values()}
    queues |= {stages.queue_of(stages.SWEEP_TASK), stages.queue_of(stages.DISPATCH_TASK)}
    queues_read = [
        container["command"][3]
        for container in _loci_containers(rendered)
        if container["command"][1] == "work"
    ]
    assert sorted(queues_read) == sorted(queues)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name.endswith("with-components")])
def test_every_stage_counts_for_the_scaler_of_its_queue(name: str) -> None:
    counted = {
        stage: scaled["spec"]["scaleTargetRef"]["name"]
        for scaled in objects(name)
        if scaled["kind"] == "ScaledObject"
        for stage in re.findall(r"'(\w+)'", scaled["spec"]["triggers"][0]["metadata"]["query"])
    }
    queues = {stage.name: stages.queue_of(stage.task) for stage in stages.STAGES.values()}
    # The sweep has no scaler: it removes what deletions left in batches of a thousand.
    assert counted == {name: f"loci-{queue}" for name, queue in queues.items() if queue != "sweep"}


def test_every_path_of_a_probe_is_one_of_the_gateways_or_flowers(rendered: list[Object]) -> None:
    gateway = set(create_app(config.load()).openapi()["paths"])
    flower = {"/healthcheck"}
    probed = [
        (container["name"], probe["httpGet"]["path"])
        for container in _loci_containers(rendered)
        for probe in (container.get(f"{when}Probe", {}) for when in ("startup", "readiness", "liveness"))
        if "httpGet" in probe
    ]
    assert len(probed) == 6
    assert all(path in (flower if name == "flower" else gateway) for name, path in probed)


def test_every_secret_is_created_by_a_command_of_the_readme(rendered: list[Object]) -> None:
    readme = (DEPLOY / "README.md").read_text().replace("\\\n", " ")
    created = {
        (words[4], pair.removeprefix("--from-literal=").split("=")[0])
        for line in readme.splitlines()
        if line.strip().startswith("kubectl create secret generic")
        for words in [shlex.split(line)]
        for pair in words[5:]
        if pair.startswith("--from-literal=")
    }
    used = {(ref["name"], ref["key"]) for ref in _secret_references(rendered)}
    assert used
    assert used <= created
    assert not [manifest for manifest in rendered if manifest["kind"] == "Secret"]


def _secret_references(rendered: Iterable[Object]) -> Iterator[Object]:
    for container in containers(rendered):
        yield from (
            pair["valueFrom"]["secretKeyRef"]
            for pair in container.get("env", [])
            if "secretKeyRef" in pair.get("valueFrom", {})
        )
    for extension in rendered:
        if extension["kind"] == "TriggerAuthentication":
            yield from extension["spec"]["secretTargetRef"]


def test_no_manifest_contains_a_secret_value(rendered: list[Object]) -> None:
    secret = {
        f"LOCI_{name.upper()}" for name, field in config.Settings.model_fields.items() if _is_secret(field)
    }
    assert secret
    literal = {
        pair["name"]
        for container in containers(rendered)
        for pair in container.get("env", [])
        if "value" in pair
    }
    maps = {name for manifest in rendered if manifest["kind"] == "ConfigMap" for name in manifest["data"]}
    assert not (literal | maps) & secret


def _is_secret(field: Any) -> bool:
    return "SecretStr" in str(field.annotation)


def test_every_config_map_that_is_referenced_exists(rendered: list[Object]) -> None:
    existing = {manifest["metadata"]["name"] for manifest in rendered if manifest["kind"] == "ConfigMap"}
    named = {source["configMapRef"]["name"] for c in containers(rendered) for source in c.get("envFrom", [])}
    mounted = {
        volume["configMap"]["name"]
        for spec in filter(None, map(pod_spec, rendered))
        for volume in spec.get("volumes", [])
        if "configMap" in volume
    }
    assert named | mounted == existing


# ── compose.yaml and the Dockerfile ──


def _compose() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return services


def test_every_command_of_compose_can_be_parsed_and_each_process_and_queue_is_there() -> None:
    ours = {name: service for name, service in _compose().items() if service["image"].startswith("loci:")}
    for service in ours.values():
        _parse_command(["loci", *service["command"]])
    kubernetes = {
        container["command"][1:][-3] if "work" in container["command"] else container["name"]
        for container in _pods()
    }
    assert set(ours) == kubernetes


def _pods() -> list[Object]:
    return [
        container
        for container in _loci_containers(objects("small"))
        if container["name"] != "wait-for-schema"
    ]


def test_every_variable_of_compose_is_a_setting_and_is_in_the_example() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    example = {
        line.split("=")[0] for line in (DEPLOY / ".env.example").read_text().splitlines() if "=" in line
    }
    example = {name for name in example if not name.startswith("#")}
    assert set(re.findall(r"\$\{(\w+)", text)) == example
    ours = [
        service.get("environment", {})
        for service in _compose().values()
        if service["image"].startswith("loci:")
    ]
    assert set().union(*ours) <= SETTINGS
    assert set(_compose()["postgres"]["environment"]) - {"POSTGRES_PASSWORD"} == BY_POSTGRES


def test_everything_in_compose_has_a_health_check_and_waits_for_what_it_needs() -> None:
    services = _compose()
    for name, service in services.items():
        if not service["image"].startswith("loci:"):
            assert service["healthcheck"]["test"], name
        for needed, how in service.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if needed == "migrate" else "service_healthy"
            assert how == {"condition": wanted}
    reading = [
        service for service in services.values() if "LOCI_POSTGRES_URL" in service.get("environment", {})
    ]
    assert all(
        "migrate" in service["depends_on"] for service in reading if service["command"][0] != "migrate"
    )


def test_the_image_runs_the_cli_without_root_rights_and_has_a_health_check() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    instructions = {
        word: rest for word, rest in steps if word in {"ENTRYPOINT", "CMD", "USER", "HEALTHCHECK", "ENV"}
    }
    entry, default = yaml.safe_load(instructions["ENTRYPOINT"]), yaml.safe_load(instructions["CMD"])
    _parse_command([*entry, *default])
    _parse_command(yaml.safe_load(instructions["HEALTHCHECK"].partition("CMD ")[2]))
    assert all(number.isdigit() and int(number) > 0 for number in instructions["USER"].split(":"))
    assert set(re.findall(r"(LOCI_\w+)=", instructions["ENV"])) <= SETTINGS
    assert "LOCI_HEARTBEAT_FILE=/tmp/" in instructions["ENV"]
    assert len([word for word, _ in steps if word == "FROM"]) == 2


def test_the_build_context_contains_only_what_the_image_needs() -> None:
    allowed = {
        line.removeprefix("!")
        for line in (DEPLOY.parent / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    assert allowed == {
        *("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "requirements.lock"),
        *("services", "workers", "shared", "migrations"),
    }


# ── The names under which /mcp may be reached ──


def _mcp_hosts(value: str) -> set[str]:
    return set(config.load(mcp_hosts=value).mcp_host_list)


def test_mcp_may_be_reached_by_each_name_of_the_service_and_by_a_forwarded_port(
    rendered: list[Object],
) -> None:
    [settings] = [
        manifest["data"]
        for manifest in rendered
        if manifest["kind"] == "ConfigMap" and "LOCI_MCP_HOSTS" in manifest["data"]
    ]
    [service] = [
        manifest["metadata"]
        for manifest in rendered
        if manifest["kind"] == "Service" and manifest["metadata"]["name"] == "loci-gateway"
    ]
    name, namespace = service["name"], service["namespace"]
    of_service = {name, f"{name}.{namespace}", f"{name}.{namespace}.svc"}
    hosts = _mcp_hosts(settings["LOCI_MCP_HOSTS"])
    assert hosts >= of_service | {f"{name}.{namespace}.svc.cluster.local", "127.0.0.1", "localhost"}
    assert "*" not in hosts


def test_mcp_may_be_reached_by_the_name_of_the_container_unless_the_example_is_changed() -> None:
    value = _compose()["gateway"]["environment"]["LOCI_MCP_HOSTS"]
    default = re.fullmatch(r"\$\{LOCI_MCP_HOSTS:-(.+)\}", value)
    assert default is not None
    assert _mcp_hosts(default[1]) == {"gateway", "127.0.0.1", "localhost", "[::1]"}
