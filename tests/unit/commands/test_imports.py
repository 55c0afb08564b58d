"""Each process imports what it runs. Python itself says what a real process imports (`-X importtime`)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.local import ports

_DATABASE_CLIENTS = {"sqlalchemy", "asyncpg", "qdrant_client", "numpy", "grpc"}
_PRODUCT = {"fastapi", "starlette", "alembic", "httpx"}
_NOWHERE = "127.0.0.1:1"


def imports_of(tmp_path: Path, *arguments: str, until: str) -> set[str]:
    """Run a command until it writes a line with these words, or ends; return what it has imported."""
    environment = os.environ | {
        "LOCI_BROKER_URL": f"redis://127.0.0.1:{ports.pick_free_port()}/1",
        "LOCI_DATA_DIR": str(tmp_path),
        "LOCI_FLOWER_PASSWORD": "secret",
        "LOCI_FLOWER_PORT": str(ports.pick_free_port()),
        "LOCI_PORT": str(ports.pick_free_port()),
        "LOCI_POSTGRES_URL": f"postgresql://nobody@{_NOWHERE}/nothing",
        "LOCI_REDIS_URL": f"redis://{_NOWHERE}/0",
        "LOCI_QDRANT_URL": f"http://{_NOWHERE}",
    }
    command = [sys.executable, "-X", "importtime", "-P", "-m", "services.cli", *arguments]
    lines = []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(line)
            if until in line:
                process.kill()
    assert until in lines[-1] or process.returncode == 0, lines[-20:]
    modules = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    return {".".join(module.split(".")[:2]) for module in modules} | {name.split(".")[0] for name in modules}


def test_beat_imports_the_schedule_and_the_broker_and_none_of_the_product(tmp_path: Path) -> None:
    imports = imports_of(tmp_path, "beat", until="broker_unavailable")
    assert {"celery.beat", "workers.runtime", "redis"} <= imports
    assert not imports & (
        _DATABASE_CLIENTS | _PRODUCT | {"workers.app", "flower", "shared.platform", "rich.console"}
    )


def test_flower_imports_the_broker_and_none_of_the_product(tmp_path: Path) -> None:
    imports = imports_of(tmp_path, "flower", until="Visit me at")
    assert {"flower.app", "shared.infra", "tornado"} <= imports
    assert not imports & (
        _DATABASE_CLIENTS
        | _PRODUCT
        | {"workers.app", "celery.bin.worker", "shared.platform", "shared.memory", "rich.console"}
    )


@pytest.mark.parametrize("arguments", [("--help",), ("serve", "--help"), ("keys", "--help")])
def test_the_help_imports_no_client_no_process_and_no_renderer(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    imports = imports_of(tmp_path, *arguments, until="no such line")
    assert "typer" in imports
    own = {"shared.infra", "services.gateway", "services.local", "workers"}
    assert not imports & (
        _DATABASE_CLIENTS | _PRODUCT | own | {"rich", "structlog", "celery", "redis", "asyncio"}
    )
    # typer imports pydantic as soon as a command with options is asked for its help.
    assert "pydantic" not in imports or arguments != ("--help",)


@pytest.mark.parametrize(
    ("command", "own", "until"),
    [("serve", "fastapi", "index_not_prepared"), ("work", "celery.worker", "Cannot connect to redis")],
)
def test_gateway_and_workers_import_no_client_that_they_do_not_use(
    tmp_path: Path, command: str, own: str, until: str
) -> None:
    imports = imports_of(tmp_path, command, until=until)
    assert {own, "sqlalchemy", "aiohttp", "shared.lifecycle"} <= imports
    assert not imports & {"qdrant_client", "numpy", "grpc", "httpx", "rich.console", "alembic"}
    # A gateway only publishes.
    assert ("celery.app" in imports) == (command == "work")


def test_workers_import_the_official_client_of_qdrant_only_when_they_need_it() -> None:
    program = (
        "import sys, workers.sweep.tasks, workers.embedding.tasks\n"
        "import workers.enrichment.tasks, workers.dream.tasks\n"
        "print(sorted({'qdrant_client', 'numpy', 'grpc'} & set(sys.modules)))"
    )
    environment = os.environ | {"LOCI_BROKER_URL": "redis://127.0.0.1:1/1"}
    output = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert output.stdout == "[]\n"
