"""The manifests can be rendered and are valid for three versions of Kubernetes."""

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


def _schema_of(manifest: Object) -> Any:
    group, _, version = manifest["apiVersion"].partition("/")
    return SCHEMAS.get(f"{manifest['kind']}.{group}.{version}")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_matches_the_schema_of_each_kubernetes_version(version: str) -> None:
    # Each is validated once, though most are in several variants, because validation is slow.
    every = [
        manifest
        for name in variants.VARIANTS
        for manifest in variants.objects(name)
        if _schema_of(manifest) is None
    ]
    distinct = {json.dumps(manifest, sort_keys=True): manifest for manifest in every}
    assert len(distinct) > 30
    for manifest in distinct.values():
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_misspelt_field_is_invalid(version: str) -> None:
    [gateway] = [
        manifest for manifest in variants.objects("small") if manifest["metadata"]["name"] == "loci-gateway"
    ][:1]
    gateway["spec"]["replica"] = 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(gateway, version, strict=True)


@pytest.mark.parametrize("variant", ["small-with-components", "production-with-components"], indirect=True)
def test_every_extension_matches_its_own_schema(rendered: list[Object]) -> None:
    extensions = [manifest for manifest in rendered if _schema_of(manifest) is not None]
    assert {manifest["kind"] for manifest in extensions} == {name.partition(".")[0] for name in SCHEMAS}
    for manifest in extensions:
        jsonschema.validate(manifest, _schema_of(manifest))


def test_no_two_objects_have_the_same_name(rendered: list[Object]) -> None:
    names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in rendered]
    assert len(names) == len(set(names))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed to compare with")
def test_kubectl_renders_the_same_objects(variant: str, rendered: list[Object], tmp_path: Path) -> None:
    # In a copy, because Kustomize accepts no absolute path.
    overlay, components = variants.VARIANTS[variant]
    copy = tmp_path / "kubernetes"
    shutil.copytree(variants.KUBERNETES, copy)
    folder = copy / "overlays" / overlay
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    kustomization["components"] = [f"../../components/{component}" for component in components]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    command = ["kubectl", "kustomize", str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rendered_by_kubectl = {_kind_and_name(manifest): manifest for manifest in yaml.safe_load_all(output)}
    assert {_kind_and_name(manifest): manifest for manifest in rendered} == rendered_by_kubectl


def _kind_and_name(manifest: Object) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


@pytest.mark.parametrize(
    "kustomization",
    [
        {"namePrefix": "x-"},
        {"configMapGenerator": [{"name": "m", "envs": ["e"]}]},
        {"configMapGenerator": [{"name": "m", "behavior": "merge", "literals": ["A=b"]}]},
        {"patches": [{"patch": "{spec: {}}", "target": {"kind": "Job"}}]},
        {"patches": [{"patch": "{}", "target": {"group": "apps"}}]},
    ],
)
def test_the_renderer_refuses_what_it_does_not_support(kustomization: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    with pytest.raises(Unsupported):
        render(tmp_path)
