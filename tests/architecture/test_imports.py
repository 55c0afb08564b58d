"""DESIGN: imports run downward only. The contracts stand in pyproject.toml."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path


def test_every_import_contract_is_kept(repository: Path) -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    contracts = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    kept = re.search(r"Contracts: (\d+) kept, 0 broken", done.stdout)
    assert kept is not None
    assert int(kept[1]) == len(contracts) > 0
