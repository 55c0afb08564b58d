"""Issue 5, point 2: what the deployment names exists: commands, settings, paths, secrets, images."""

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
# Read by roles.sql, not by Loci.
BY_POSTGRES = {"LOCI_OWNER_PASSWORD", "LOCI_LOGIN_PASSWORD", "LOCI_SCALER_PASSWORD"}
# Typer brings a click of its own, and shows this class of it by its children only.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
STORES = {"postgres", "redis", "qdrant/qdrant"}


def _ours(rendered: Iterable[Object]) -> list[Object]:
    return [one for one in containers(rendered) if one["image"].split(":")[0] not in STORES]


def _commands(container: Object) -> Iterator[list[str]]:
    yield container["command"]
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        if "exec" in container.get(name, {}):
            yield container[name]["exec"]["command"]


def _parse(words: list[str]) -> None:
    """Parse a command line as `loci` would, without running it; raise UsageError if it can't be."""
    program, *rest = words
    assert program == "loci"
    command: Any = typer.main.get_command(cli)
    while isinstance(command, TyperGroup):
        assert rest, "a group of commands is none"
        context = command.context_class(command, info_name=program)
        _, command, rest = command.resolve_command(context, rest)
    command.make_context(command.name, list(rest))


def test_every_command_in_a_manifest_can_be_parsed_by_the_cli(rendered: list[Object]) -> None:
    commands = [words for one in _ours(rendered) for words in _commands(one)]
    assert {words[1] for words in commands} == {
        *("serve", "work", "beat", "flower", "migrate", "wait-for-schema", "alive"),
    }
    for words in commands:
        _parse(words)


@pytest.mark.parametrize(
    "words", ["loci serv", "loci work --queue x", "loci work --concurrency 0", "loci keys"]
)
def test_a_command_that_is_none_is_noticed(words: str) -> None:
    with pytest.raises((UsageError, AssertionError)):
        _parse(words.split())


def test_every_variable_of_ours_is_a_setting(rendered: list[Object]) -> None:
    maps = [
        set(one["data"]) for one in rendered if one["kind"] == "ConfigMap" and "roles.sql" not in one["data"]
    ]
    given = [{pair["name"] for pair in one.get("env", [])} for one in _ours(rendered)]
    named = set().union(*maps, *given)
    assert len(named) > 8
    assert named <= SETTINGS


def test_the_settings_of_the_config_map_are_good_ones(
    rendered: list[Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    [data] = [
        one["data"] for one in rendered if one["kind"] == "ConfigMap" and "roles.sql" not in one["data"]
    ]
    for name, value in data.items():
        monkeypatch.setenv(name, value)
    config.load()


def test_every_queue_has_workers_and_every_worker_reads_queues_that_exist(rendered: list[Object]) -> None:
    queues = {stages.queue_of(stage.task) for stage in stages.STAGES.values()}
    queues |= {stages.queue_of(stages.SWEEP_TASK), stages.queue_of(stages.DISPATCH_TASK)}
    read = [one["command"][3] for one in _ours(rendered) if one["command"][1] == "work"]
    assert sorted(read) == sorted(queues)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name.endswith("with-components")])
def test_every_stage_counts_for_the_scaler_of_its_queue(name: str) -> None:
    counted = {
        stage: scaled["spec"]["scaleTargetRef"]["name"]
        for scaled in objects(name)
        if scaled["kind"] == "ScaledObject"
        for stage in re.findall(r"'(\w+)'", scaled["spec"]["triggers"][0]["metadata"]["query"])
    }
    assert counted == {stage.name: f"loci-{stages.queue_of(stage.task)}" for stage in stages.STAGES.values()}


def test_every_path_of_a_probe_is_one_of_the_gateways_or_flowers(rendered: list[Object]) -> None:
    gateway = set(create_app(config.load()).openapi()["paths"])
    flower = {"/healthcheck"}
    probed = [
        (one["name"], probe["httpGet"]["path"])
        for one in _ours(rendered)
        for probe in (one.get(f"{when}Probe", {}) for when in ("startup", "readiness", "liveness"))
        if "httpGet" in probe
    ]
    assert len(probed) == 6
    assert all(path in (flower if name == "flower" else gateway) for name, path in probed)


def test_every_secret_is_made_by_a_command_of_the_readme(rendered: list[Object]) -> None:
    readme = (DEPLOY / "README.md").read_text().replace("\\\n", " ")
    made = {
        (words[4], pair.removeprefix("--from-literal=").split("=")[0])
        for line in readme.splitlines()
        if line.strip().startswith("kubectl create secret generic")
        for words in [shlex.split(line)]
        for pair in words[5:]
        if pair.startswith("--from-literal=")
    }
    used = {(ref["name"], ref["key"]) for ref in _secret_references(rendered)}
    assert used
    assert used <= made
    assert not [one for one in rendered if one["kind"] == "Secret"]


def _secret_references(rendered: Iterable[Object]) -> Iterator[Object]:
    for one in containers(rendered):
        yield from (
            pair["valueFrom"]["secretKeyRef"]
            for pair in one.get("env", [])
            if "secretKeyRef" in pair.get("valueFrom", {})
        )
    for extension in rendered:
        if extension["kind"] == "TriggerAuthentication":
            yield from extension["spec"]["secretTargetRef"]


def test_no_value_that_must_be_secret_stands_in_a_manifest(rendered: list[Object]) -> None:
    secret = {
        f"LOCI_{name.upper()}" for name, field in config.Settings.model_fields.items() if _secret(field)
    }
    assert secret
    literal = {pair["name"] for one in containers(rendered) for pair in one.get("env", []) if "value" in pair}
    maps = {name for one in rendered if one["kind"] == "ConfigMap" for name in one["data"]}
    assert not (literal | maps) & secret


def _secret(field: Any) -> bool:
    return "SecretStr" in str(field.annotation)


def test_every_config_map_that_is_named_is_there(rendered: list[Object]) -> None:
    there = {one["metadata"]["name"] for one in rendered if one["kind"] == "ConfigMap"}
    named = {one["configMapRef"]["name"] for c in containers(rendered) for one in c.get("envFrom", [])}
    mounted = {
        volume["configMap"]["name"]
        for spec in filter(None, map(pod_spec, rendered))
        for volume in spec.get("volumes", [])
        if "configMap" in volume
    }
    assert named | mounted == there


# ── compose.yaml and the Dockerfile ──


def _compose() -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return told


def test_every_command_of_compose_can_be_parsed_and_each_process_and_queue_is_there() -> None:
    ours = {name: one for name, one in _compose().items() if one["image"].startswith("loci:")}
    for one in ours.values():
        _parse(["loci", *one["command"]])
    kubernetes = {one["command"][1:][-3] if "work" in one["command"] else one["name"] for one in _pods()}
    assert set(ours) == kubernetes


def _pods() -> list[Object]:
    return [one for one in _ours(objects("small")) if one["name"] != "wait-for-schema"]


def test_every_variable_of_compose_is_a_setting_and_stands_in_the_example() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    example = {
        line.split("=")[0] for line in (DEPLOY / ".env.example").read_text().splitlines() if "=" in line
    }
    example = {name for name in example if not name.startswith("#")}
    assert set(re.findall(r"\$\{(\w+)", text)) == example
    ours = [one.get("environment", {}) for one in _compose().values() if one["image"].startswith("loci:")]
    assert set().union(*ours) <= SETTINGS
    assert set(_compose()["postgres"]["environment"]) - {"POSTGRES_PASSWORD"} == BY_POSTGRES


def test_everything_in_compose_has_a_health_check_and_waits_for_what_it_needs() -> None:
    services = _compose()
    for name, one in services.items():
        if not one["image"].startswith("loci:"):
            assert one["healthcheck"]["test"], name
        for needed, how in one.get("depends_on", {}).items():
            wanted = "service_completed_successfully" if needed == "migrate" else "service_healthy"
            assert how == {"condition": wanted}
    reading = [one for one in services.values() if "LOCI_POSTGRES_URL" in one.get("environment", {})]
    assert all("migrate" in one["depends_on"] for one in reading if one["command"][0] != "migrate")


def test_the_image_runs_the_cli_as_nobody_and_asks_whichever_process_it_is() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    said = {word: rest for word, rest in steps if word in {"ENTRYPOINT", "CMD", "USER", "HEALTHCHECK", "ENV"}}
    entry, default = yaml.safe_load(said["ENTRYPOINT"]), yaml.safe_load(said["CMD"])
    _parse([*entry, *default])
    _parse(yaml.safe_load(said["HEALTHCHECK"].partition("CMD ")[2]))
    assert all(number.isdigit() and int(number) > 0 for number in said["USER"].split(":"))
    assert set(re.findall(r"(LOCI_\w+)=", said["ENV"])) <= SETTINGS
    assert "LOCI_HEARTBEAT_FILE=/tmp/" in said["ENV"]
    assert len([word for word, _ in steps if word == "FROM"]) == 2


def test_the_builds_context_holds_what_the_wheel_is_made_from_and_no_more() -> None:
    allowed = {
        line.removeprefix("!")
        for line in (DEPLOY.parent / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    assert allowed == {
        *("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"),
        *("services", "workers", "shared", "migrations"),
    }
