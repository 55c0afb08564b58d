"""The manifests can be applied again, with other settings or as another release. Jobs cannot be changed."""

import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from tests.deploy.kustomize import Object, containers, render
from tests.deploy.variants import KUBERNETES, OVERLAYS

COMPOSE = KUBERNETES.parent / "compose.yaml"
_CHANGED = {
    "apiVersion": "kustomize.config.k8s.io/v1alpha1",
    "kind": "Component",
    "configMapGenerator": [{"name": "loci", "behavior": "merge", "literals": ["LOCI_LOG_LEVEL=DEBUG"]}],
}


def _changed(folder: Path) -> Path:
    """Write a component that changes one setting."""
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(_CHANGED))
    return folder


def _of_kind(rendered: list[Object], kind: str) -> dict[str, Object]:
    return {manifest["metadata"]["name"]: manifest for manifest in rendered if manifest["kind"] == kind}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_another_setting_changes_every_deployment_and_no_job(overlay: str, tmp_path: Path) -> None:
    folder = KUBERNETES / "overlays" / overlay
    first, second = render(folder), render(folder, [_changed(tmp_path / "changed")])
    _assert_only_jobs_stay(first, second)


def _assert_only_jobs_stay(first: list[Object], second: list[Object]) -> None:
    before, after = _of_kind(first, "Deployment"), _of_kind(second, "Deployment")
    assert before.keys() == after.keys()
    assert not [name for name in before if before[name] == after[name]], "a setting that reaches no pod"
    assert _of_kind(first, "Job")
    assert _of_kind(first, "Job") == _of_kind(second, "Job")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed to render with")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kubectl_renders_the_same_job_with_another_setting(overlay: str, tmp_path: Path) -> None:
    # In a copy, because Kustomize accepts no absolute path.
    copy = tmp_path / "kubernetes"
    shutil.copytree(KUBERNETES, copy)
    folder = copy / "overlays" / overlay
    first = _render_with_kubectl(folder)
    _changed(copy / "components" / "changed")
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    kustomization["components"] = ["../../components/changed"]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    _assert_only_jobs_stay(first, _render_with_kubectl(folder))


def _render_with_kubectl(folder: Path) -> list[Object]:
    command = ["kubectl", "kustomize", str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return list(yaml.safe_load_all(output))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_release_has_a_job_and_images_of_its_own(overlay: str) -> None:
    rendered, release = render(KUBERNETES / "overlays" / overlay), version("loci")
    assert list(_of_kind(rendered, "Job")) == [f"loci-migrate-{release}"]
    tags = {c["image"] for c in containers(rendered) if "loci" in c["image"]}
    compose = {service["image"] for service in yaml.safe_load(COMPOSE.read_text())["services"].values()}
    tags |= {image for image in compose if "loci" in image}
    assert {tag.rpartition(":")[2] for tag in tags} == {release}
