"""Folders of killed test runs are removed by the next run, and those in use are left alone."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.memory_folder import memory_folder

_KILLED_RUN = """
import os, signal, sys
from pathlib import Path
from tests.memory_folder import memory_folder

with memory_folder(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_folder_of_a_killed_run_is_removed_and_one_in_use_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where folders go if there is little memory
    monkeypatch.setattr(tempfile, "tempdir", None)
    with memory_folder(tmp_path) as in_use:
        subprocess.run([sys.executable, "-c", _KILLED_RUN, str(tmp_path)], check=False)
        (abandoned,) = set(tmp_path.iterdir()) - {in_use}
        with memory_folder(tmp_path) as newer:
            assert set(tmp_path.iterdir()) == {in_use, newer}
        assert not abandoned.exists()
    assert not list(tmp_path.iterdir())
