"""Kustomize, as far as `deploy/kubernetes` uses it, so that tests need no cluster tool.

Known are resources, components, namespace, images, configMapGenerator (literals, files, merge) and
patches with a target (JSON 6902, or the deletion of what matches). Anything else is refused, never
passed over. Where `kubectl` is installed a test compares the two, object by object.
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
_KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", *_KEYS}
_TARGET = {"kind", "name", "labelSelector"}
# Digits and letters that could spell something in a generated name are replaced, as Kustomize does.
_SPELLING = str.maketrans({"0": "g", "1": "h", "3": "k", "a": "m", "e": "t"})


class Unsupported(Exception):
    """A feature of Kustomize that this does not know."""


@dataclass
class _Built:
    """What a kustomization has gathered."""

    objects: list[Object] = field(default_factory=list)
    maps: dict[str, dict[str, str]] = field(default_factory=dict)
    namespace: str | None = None


def render(folder: Path, components: Sequence[Path] = ()) -> list[Object]:
    """Return the objects of a kustomization, with components added to it as its own would be."""
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
    told = _read(folder)
    for name in told.get("resources", []):
        _take(built, folder / name)
    for one in (*(folder / name for name in told.get("components", [])), *components):
        _apply(built, one)
    for generator in told.get("configMapGenerator", []):
        _generate(built, folder, generator)
    for patch in told.get("patches", []):
        _patch(built, folder, patch)
    _move(built, told.get("namespace"))
    for image in told.get("images", []):
        _rename_image(built.objects, image)


def _read(folder: Path) -> Object:
    told: Object = yaml.safe_load((folder / "kustomization.yaml").read_text())
    _refuse(set(told) - _KNOWN)
    for key, known in _KEYS.items():
        for one in told.get(key, []):
            _refuse(set(one) - known)
    for patch in told.get("patches", []):
        _refuse(set(patch["target"]) - _TARGET)
    return told


def _refuse(unknown: set[str]) -> None:
    if unknown:
        raise Unsupported(", ".join(sorted(unknown)))


def _take(built: _Built, path: Path) -> None:
    if path.is_dir():
        inner = _Built()
        _apply(inner, path)
        built.objects += inner.objects
        built.maps |= inner.maps
    else:
        built.objects += [one for one in yaml.safe_load_all(path.read_text()) if one]


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
    told = yaml.safe_load(text)
    matching = [one for one in built.objects if _matches(one, patch["target"])]
    if isinstance(told, dict):
        _refuse({"a strategic merge"} if told.get("$patch") != "delete" else set())
        built.objects = [one for one in built.objects if one not in matching]
        return
    for one in matching:
        for step in told:
            _edit(one, step)


def _matches(one: Object, target: Object) -> bool:
    labels = one["metadata"].get("labels", {})
    wanted = (part.split("=") for part in target.get("labelSelector", "").split(",") if part)
    return (
        re.fullmatch(target.get("kind", ".*"), one["kind"]) is not None
        and re.fullmatch(target.get("name", ".*"), one["metadata"]["name"]) is not None
        and all(labels.get(key) == value for key, value in wanted)
    )


def _edit(one: Object, step: Object) -> None:
    _refuse({step["op"]} - {"add", "replace"})
    *way, last = (part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:])
    place: Any = one
    for part in way:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if not isinstance(place, dict) or (step["op"] == "replace" and last not in place):
        raise Unsupported(f"{step['op']} at {step['path']}")
    place[last] = json.loads(json.dumps(step["value"]))


def _move(built: _Built, namespace: str | None) -> None:
    for one in built.objects if namespace else ():
        if one["kind"] == "Namespace":
            one["metadata"]["name"] = namespace
        else:
            one["metadata"]["namespace"] = namespace
    built.namespace = namespace or built.namespace


def _rename_image(objects: Iterable[Object], image: Object) -> None:
    for container in containers(objects):
        name, _, tag = container["image"].partition(":")
        if name == image["name"]:
            tag = image.get("newTag", tag)
            container["image"] = image.get("newName", name) + (f":{tag}" if tag else "")


def pod_spec(one: Object) -> Object | None:
    """Return the specification of the pods that an object makes, None if it makes none."""
    template: Object = one.get("spec", {}).get("template", {}) if isinstance(one.get("spec"), dict) else {}
    return template.get("spec")


def containers(objects: Iterable[Object]) -> Iterator[Object]:
    """Yield every container and init container."""
    for spec in filter(None, map(pod_spec, objects)):
        yield from spec.get("initContainers", [])
        yield from spec["containers"]


def _references(objects: Iterable[Object]) -> Iterator[Object]:
    """Yield what names a ConfigMap."""
    for spec in filter(None, map(pod_spec, objects)):
        yield from (volume["configMap"] for volume in spec.get("volumes", []) if "configMap" in volume)
    for container in containers(objects):
        yield from (one["configMapRef"] for one in container.get("envFrom", []) if "configMapRef" in one)


def _digest(data: dict[str, str]) -> str:
    # Kustomize means to put the name in, looks for it at the wrong place and puts in none.
    content = {"data": dict(sorted(data.items())), "kind": "ConfigMap", "name": ""}
    # As Go writes JSON.
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    for plain, escaped in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
        text = text.replace(plain, escaped)
    return hashlib.sha256(text.encode()).hexdigest()[:10].translate(_SPELLING)
