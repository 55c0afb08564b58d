"""The import contracts in pyproject.toml are kept: packages import only those below them."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path


def test_every_import_contract_is_kept(repository: Path) -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    result = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    contracts = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    summary = re.search(r"Contracts: (\d+) kept, 0 broken", result.stdout)
    assert summary is not None
    assert int(summary[1]) == len(contracts) > 0
