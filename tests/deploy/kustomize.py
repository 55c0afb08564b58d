"""Render the part of Kustomize that `deploy/kubernetes` uses, so that tests need no `kubectl`.

Supported are resources, components, namespace, images, configMapGenerator (literals, files, merge) and
patches with a target (JSON 6902, or the deletion of what matches). Anything else is an error. Where
`kubectl` is installed, a test compares both results object by object.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
_KEYS: dict[str, set[str]] = {
    "images": {"name", "newName", "newTag"},
    "configMapGenerator": {"name", "behavior", "literals", "files"},
    "patches": {"path", "patch", "target"},
}
_SUPPORTED = {"apiVersion", "kind", "namespace", "resources", "components", *_KEYS}
_TARGET = {"kind", "name", "labelSelector"}
# Characters that could form words in a generated name are replaced, as Kustomize does.
_SPELLING = str.maketrans({"0": "g", "1": "h", "3": "k", "a": "m", "e": "t"})


class Unsupported(Exception):
    """A feature of Kustomize that this renderer does not support."""


@dataclass
class _Built:
    """The objects and maps that a kustomization has produced so far."""

    objects: list[Object] = field(default_factory=list)
    maps: dict[str, dict[str, str]] = field(default_factory=dict)
    namespace: str | None = None


def render(folder: Path, components: Sequence[Path] = ()) -> list[Object]:
    """Return the objects of a kustomization, to which components are added like its own."""
    built = _Built()
    _apply(built, folder, components)
    names = {name: f"{name}-{_digest(data)}" for name, data in built.maps.items()}
    for name, data in built.maps.items():
        meta = {"name": names[name]} | ({"namespace": built.namespace} if built.namespace else {})
        built.objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
    for reference in _references(built.objects):
        reference["name"] = names.get(reference["name"], reference["name"])
    return built.objects


def _apply(built: _Built, folder: Path, components: Sequence[Path] = ()) -> None:
    kustomization = _read(folder)
    for name in kustomization.get("resources", []):
        _add_resource(built, folder / name)
    for component in (*(folder / name for name in kustomization.get("components", [])), *components):
        _apply(built, component)
    for generator in kustomization.get("configMapGenerator", []):
        _generate(built, folder, generator)
    for patch in kustomization.get("patches", []):
        _patch(built, folder, patch)
    _set_namespace(built, kustomization.get("namespace"))
    for image in kustomization.get("images", []):
        _rename_image(built.objects, image)


def _read(folder: Path) -> Object:
    kustomization: Object = yaml.safe_load((folder / "kustomization.yaml").read_text())
    _refuse(set(kustomization) - _SUPPORTED)
    for key, supported in _KEYS.items():
        for entry in kustomization.get(key, []):
            _refuse(set(entry) - supported)
    for patch in kustomization.get("patches", []):
        _refuse(set(patch["target"]) - _TARGET)
    return kustomization


def _refuse(unknown: set[str]) -> None:
    if unknown:
        raise Unsupported(", ".join(sorted(unknown)))


def _add_resource(built: _Built, path: Path) -> None:
    if path.is_dir():
        inner = _Built()
        _apply(inner, path)
        built.objects += inner.objects
        built.maps |= inner.maps
    else:
        built.objects += [manifest for manifest in yaml.safe_load_all(path.read_text()) if manifest]


def _generate(built: _Built, folder: Path, generator: Object) -> None:
    data = dict(literal.split("=", 1) for literal in generator.get("literals", []))
    data |= {name: (folder / name).read_text() for name in generator.get("files", [])}
    name, merges = generator["name"], generator.get("behavior") == "merge"
    _refuse({generator.get("behavior", "merge")} - {"merge"})
    if merges != (name in built.maps):
        raise Unsupported(f"a map {name} that is {'not there' if merges else 'there already'}")
    built.maps[name] = built.maps.get(name, {}) | data


def _patch(built: _Built, folder: Path, patch: Object) -> None:
    text = patch["patch"] if "patch" in patch else (folder / patch["path"]).read_text()
    patches = yaml.safe_load(text)
    matching = [manifest for manifest in built.objects if _matches(manifest, patch["target"])]
    if isinstance(patches, dict):
        _refuse({"a strategic merge"} if patches.get("$patch") != "delete" else set())
        built.objects = [manifest for manifest in built.objects if manifest not in matching]
        return
    for manifest in matching:
        for step in patches:
            _edit(manifest, step)


def _matches(manifest: Object, target: Object) -> bool:
    labels = manifest["metadata"].get("labels", {})
    selectors = (part.split("=") for part in target.get("labelSelector", "").split(",") if part)
    return (
        re.fullmatch(target.get("kind", ".*"), manifest["kind"]) is not None
        and re.fullmatch(target.get("name", ".*"), manifest["metadata"]["name"]) is not None
        and all(labels.get(key) == value for key, value in selectors)
    )


def _edit(manifest: Object, step: Object) -> None:
    _refuse({step["op"]} - {"add", "replace"})
    *path, last = (part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:])
    target_object: Any = manifest
    for part in path:
        target_object = target_object[int(part)] if isinstance(target_object, list) else target_object[part]
    if isinstance(target_object, list) and (step["op"], last) == ("add", "-"):
        target_object.append(json.loads(json.dumps(step["value"])))
        return
    if not isinstance(target_object, dict) or (step["op"] == "replace" and last not in target_object):
        raise Unsupported(f"{step['op']} at {step['path']}")
    target_object[last] = json.loads(json.dumps(step["value"]))


def _set_namespace(built: _Built, namespace: str | None) -> None:
    for manifest in built.objects if namespace else ():
        if manifest["kind"] == "Namespace":
            manifest["metadata"]["name"] = namespace
        else:
            manifest["metadata"]["namespace"] = namespace
    built.namespace = namespace or built.namespace


def _rename_image(objects: Iterable[Object], image: Object) -> None:
    for container in containers(objects):
        name, _, tag = container["image"].partition(":")
        if name == image["name"]:
            tag = image.get("newTag", tag)
            container["image"] = image.get("newName", name) + (f":{tag}" if tag else "")


def pod_spec(manifest: Object) -> Object | None:
    """Return the specification of the pods that an object creates, None if it creates none."""
    template: Object = (
        manifest.get("spec", {}).get("template", {}) if isinstance(manifest.get("spec"), dict) else {}
    )
    return template.get("spec")


def containers(objects: Iterable[Object]) -> Iterator[Object]:
    """Yield every container and init container."""
    for spec in filter(None, map(pod_spec, objects)):
        yield from spec.get("initContainers", [])
        yield from spec["containers"]


def _references(objects: Iterable[Object]) -> Iterator[Object]:
    """Yield the references to a ConfigMap."""
    for spec in filter(None, map(pod_spec, objects)):
        yield from (volume["configMap"] for volume in spec.get("volumes", []) if "configMap" in volume)
    for container in containers(objects):
        yield from (
            source["configMapRef"] for source in container.get("envFrom", []) if "configMapRef" in source
        )


def _digest(data: dict[str, str]) -> str:
    # Kustomize intends to include the name, but reads it from the wrong field, so it is empty.
    content = {"data": dict(sorted(data.items())), "kind": "ConfigMap", "name": ""}
    # As Go writes JSON.
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    for plain, escaped in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
        text = text.replace(plain, escaped)
    return hashlib.sha256(text.encode()).hexdigest()[:10].translate(_SPELLING)
