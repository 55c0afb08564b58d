"""A worker whose initialisation fails ends with a message, instead of looking alive and doing nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Stores


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "services.cli", "work", "--queues", "enrichment"],
        ["-m", "celery", "-A", "workers.app", "worker", "--pool", "threads", "--queues", "enrichment"],
    ],
)
def test_a_worker_with_an_unreadable_price_file_ends_and_says_why(
    stores: Stores, repository: Path, tmp_path: Path, command: list[str]
) -> None:
    heartbeat = tmp_path / "heartbeat"
    env = os.environ | {
        "LOCI_POSTGRES_URL": stores.postgres_url,
        "LOCI_REDIS_URL": stores.redis_url,
        "LOCI_QDRANT_URL": stores.qdrant_url,
        "LOCI_PRICES_FILE": str(tmp_path / "missing.toml"),
        "LOCI_HEARTBEAT_FILE": str(heartbeat),
    }
    result = subprocess.run(
        [sys.executable, *command],
        cwd=repository, env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.returncode != 0
    assert "LOCI_PRICES_FILE" in result.stdout + result.stderr
    assert not heartbeat.exists()
