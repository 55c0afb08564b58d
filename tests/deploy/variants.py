"""The ways in which `deploy/kubernetes` is meant to be applied.

`python -m tests.deploy.variants FOLDER` writes each to a file.
"""

import sys
from copy import deepcopy
from functools import cache
from pathlib import Path

import yaml

from tests.deploy.kustomize import Object, render

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
COMPONENTS = ("keda", "monitoring", "tracing")
OVERLAYS = ("small", "production")
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    name: (overlay, components)
    for overlay in OVERLAYS
    for name, components in ((overlay, ()), (f"{overlay}-with-components", COMPONENTS))
}


def objects(variant: str) -> list[Object]:
    """Render an overlay, alone or with both components. Each caller may change what it gets."""
    return deepcopy(_render(variant))


@cache
def _render(variant: str) -> list[Object]:
    """Render a variant once: to read its files takes half a second."""
    overlay, components = VARIANTS[variant]
    return render(
        KUBERNETES / "overlays" / overlay, [KUBERNETES / "components" / component for component in components]
    )


def write(folder: Path) -> None:
    """Write every variant as a file that `kubectl apply -f` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in VARIANTS:
        (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(objects(name), sort_keys=False))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
