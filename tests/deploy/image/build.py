"""Build deploy/Dockerfile without a container service and without an image registry.

The base image is made from the packages of a Debian release. Each step runs in a chroot, and layers are plain
folders. The settings of pip on this machine are passed as a build secret. The files and folders that they
name are mounted read-only during the build.
"""

import re
import tempfile
from pathlib import Path

from tests.deploy.image.tools import Failed, run

REPOSITORY = Path(__file__).parents[3]
BASE, IMAGE = "localhost/python:debian", "localhost/loci:check"
_PYTHON = "python3,python3-venv,python3-pip,python-is-python3,ca-certificates"
_SETTING = re.compile(r"^(?:global|install|:env:)\.([\w-]+)='(.*)'$", re.MULTILINE)
# Settings of pip that make sense within the build.
_PASSED = {"index-url", "extra-index-url", "find-links", "cert", "trusted-host", "default-timeout", "timeout"}


class Builder:
    """Images in a folder of their own. `close` removes containers, images and layers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._containers: list[str] = []

    def buildah(self, *words: str | Path) -> str:
        """Run buildah on this folder's images."""
        places = ("--root", self._folder / "storage", "--runroot", self._folder / "run")
        return run("buildah", *places, "--storage-driver", "vfs", *words, env={"TMPDIR": str(self._folder)})

    def make_base(self, suite: str) -> None:
        """Make the image that stands in for `python:3.x-slim`."""
        archive = self._folder / "base.tar"
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PYTHON}", suite, archive)
        container = self.buildah("from", "scratch").strip()
        self.buildah("add", "--quiet", container, archive, "/")
        archive.unlink()
        self.buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container)
        self.buildah("commit", "--quiet", "--rm", container, BASE)

    def make_image(self) -> None:
        """Build the Dockerfile on the base image."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            secret = Path(folder) / "pip.conf"
            settings = _pip_settings()
            secret.touch(mode=0o600)
            secret.write_text("\n".join(["[global]", *(f"{k} = {v}" for k, v in settings.items()), ""]))
            volumes = [f"--volume={path}:{path}:ro" for path in _named_paths(settings)]
            self.buildah(
                *("bud", "--isolation", "chroot", "--format", "docker", "--build-arg", f"PYTHON={BASE}"),
                *("--secret", f"id=pip,src={secret}", *volumes, "--tag", IMAGE),
                *("--file", REPOSITORY / "deploy" / "Dockerfile", REPOSITORY),
            )
        self._check_that_no_layer_has(settings)

    def _check_that_no_layer_has(self, settings: dict[str, str]) -> None:
        """Raise Failed if a file of the image, or its description, contains a setting of pip."""
        secrets = [value for name, value in settings.items() if name.endswith(("index-url", "find-links"))]
        description = self.buildah("inspect", "--type", "image", IMAGE)
        layers = self._folder / "storage"
        for secret in {word for value in secrets for word in value.split()}:
            found = run("sh", "-c", 'grep -rlF -- "$0" "$1" || true', secret, layers)
            if secret in description or found:
                raise Failed(f"a layer contains a setting of pip: {found or 'the description'}")

    def mount(self) -> Path:
        """Return the root file system of a new container of the image."""
        container = self.buildah("from", IMAGE).strip()
        return Path(self.buildah("mount", container).strip())

    def size_in_megabytes(self) -> int:
        """Return the size of the files of the image."""
        root = self.mount()
        return int(run("du", "--summarize", "--bytes", "--one-file-system", root).split()[0]) // 10**6

    def close(self) -> None:
        """Remove everything that was made."""
        self.buildah("rm", "--all")
        self.buildah("rmi", "--all", "--force")


def _pip_settings() -> dict[str, str]:
    """Return the settings of pip on this machine, those of the environment last."""
    listed = _SETTING.findall(run("python3", "-m", "pip", "config", "list"))
    return {name: value.replace("\\n", " ").strip() for name, value in listed if name in _PASSED}


def _named_paths(settings: dict[str, str]) -> set[Path]:
    """Return the files and folders of this machine that the settings name."""
    words = {word.removeprefix("file://") for value in settings.values() for word in value.split()}
    paths = {Path(word) for word in words if word.startswith("/")}
    # An index consists of the folder `simple` and of files beside it.
    return {path.parent if path.name == "simple" else path for path in paths if path.exists()}
