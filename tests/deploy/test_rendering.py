"""Issue 5, point 2: the manifests are rendered and checked, for three versions of Kubernetes."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.deploy import variants
from tests.deploy.kustomize import Object, Unsupported, render

VERSIONS = ("1.35", "1.36", "1.37")
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (Path(__file__).parent / "schemas").iterdir()}


def _schema_of(one: Object) -> Any:
    group, _, version = one["apiVersion"].partition("/")
    return SCHEMAS.get(f"{one['kind']}.{group}.{version}")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_keeps_to_the_schema_of_a_kubernetes_version(version: str) -> None:
    # Each once, though most stand in several variants: reading a schema takes a moment.
    every = [one for name in variants.VARIANTS for one in variants.objects(name) if _schema_of(one) is None]
    distinct = {json.dumps(one, sort_keys=True): one for one in every}
    assert len(distinct) > 30
    for one in distinct.values():
        kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_misspelt_field_does_not_pass(version: str) -> None:
    [gateway] = [one for one in variants.objects("small") if one["metadata"]["name"] == "loci-gateway"][:1]
    gateway["spec"]["replica"] = 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(gateway, version, strict=True)


@pytest.mark.parametrize("variant", ["small-with-components", "production-with-components"], indirect=True)
def test_every_extension_keeps_to_its_own_schema(rendered: list[Object]) -> None:
    extensions = [one for one in rendered if _schema_of(one) is not None]
    assert {one["kind"] for one in extensions} == {name.partition(".")[0] for name in SCHEMAS}
    for one in extensions:
        jsonschema.validate(one, _schema_of(one))


def test_no_two_objects_have_the_same_name(rendered: list[Object]) -> None:
    names = [(one["kind"], one["metadata"]["name"]) for one in rendered]
    assert len(names) == len(set(names))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed to compare with")
def test_kubectl_renders_the_same_objects(variant: str, rendered: list[Object], tmp_path: Path) -> None:
    # Beside the originals: Kustomize takes no absolute path.
    overlay, components = variants.VARIANTS[variant]
    copy = tmp_path / "kubernetes"
    shutil.copytree(variants.KUBERNETES, copy)
    folder = copy / "overlays" / overlay
    told = yaml.safe_load((folder / "kustomization.yaml").read_text())
    told["components"] = [f"../../components/{one}" for one in components]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(told))
    command = ["kubectl", "kustomize", str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    theirs = {_place(one): one for one in yaml.safe_load_all(output)}
    assert {_place(one): one for one in rendered} == theirs


def _place(one: Object) -> tuple[str, str]:
    return one["kind"], one["metadata"]["name"]


@pytest.mark.parametrize(
    "told",
    [
        {"namePrefix": "x-"},
        {"configMapGenerator": [{"name": "m", "envs": ["e"]}]},
        {"configMapGenerator": [{"name": "m", "behavior": "merge", "literals": ["A=b"]}]},
        {"patches": [{"patch": "{spec: {}}", "target": {"kind": "Job"}}]},
        {"patches": [{"patch": "{}", "target": {"group": "apps"}}]},
    ],
)
def test_what_our_renderer_does_not_know_it_refuses(told: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(told))
    with pytest.raises(Unsupported):
        render(tmp_path)
