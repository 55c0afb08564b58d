"""The stack with stand-ins for Loci's programs, real Postgres and Redis, and an external Qdrant."""

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from services.local import data_dir, ports, process_record
from services.local.process import StartFailed
from services.local.stack import Stack
from shared.foundation import config, errors
from tests.integration.local import foreground, programs
from tests.integration.local.conditions import until

EXTERNAL_QDRANT = "http://127.0.0.1:6333"


@pytest.fixture(autouse=True)
def external_qdrant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCI_QDRANT_URL", EXTERNAL_QDRANT)


@pytest.fixture
def settings(tmp_path: Path) -> config.Settings:
    return config.load(
        data_dir=tmp_path / "data", port=ports.pick_free_port(), flower_port=ports.pick_free_port()
    )


class Up:
    """A stack in the foreground of a process of its own, as `loci up` runs it."""

    def __init__(self, settings: config.Settings, **roles: str) -> None:
        self.data = settings.data_dir
        env = {
            **os.environ,
            "LOCI_DATA_DIR": str(settings.data_dir),
            "LOCI_PORT": str(settings.port),
            "LOCI_FLOWER_PORT": str(settings.flower_port),
        }
        self.errors = settings.data_dir.with_suffix(".stderr")
        with self.errors.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", foreground.__name__, json.dumps(roles)],
                env=env,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def says(self, words: str) -> None:
        until(lambda: words in self.errors.read_text())

    def children(self) -> dict[str, int]:
        """Return the process ids by name, from the process records."""
        pids = {}
        for path in [*self.data.glob("run/*.json"), *self.data.glob("*/process.json")]:
            with suppress(FileNotFoundError):  # a program of the start that has ended since it was listed
                pids[path.stem if path.parent.name == "run" else path.parent.name] = json.loads(
                    path.read_text()
                )["pid"]
        return pids

    def end(self) -> tuple[int, str]:
        """Wait for its end; return the exit code and the unread rest of stdout."""
        rest, _ = self.process.communicate(timeout=40)
        return self.process.returncode, rest


@pytest.fixture
def up(settings: config.Settings) -> Iterator[Callable[..., Up]]:
    started: list[Up] = []

    def start(settings: config.Settings = settings, **roles: str) -> Up:
        started.append(Up(settings, **roles))
        return started[-1]

    yield start
    for stack in started:
        stack.process.kill()
        stack.process.communicate()
    for data in {stack.data for stack in started}:
        process_record.stop_leftovers([*data.glob("run/*.json"), *data.glob("*/process.json")], within=5)


def have_ended(children: dict[str, int]) -> bool:
    return all(process_record.start_identity(pid) is None for pid in children.values())


def responds(port: int) -> bool:
    connection = http.client.HTTPConnection(ports.HOST, port, timeout=2)
    with suppress(OSError):
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    return False


def note(settings: config.Settings) -> dict[str, Any]:
    output: dict[str, Any] = json.loads((settings.data_dir / "note.json").read_text())
    return output


def test_the_stack_prints_ready_once_the_gateway_is_ready(
    up: Callable[..., Up], settings: config.Settings
) -> None:
    stack = up()
    assert stack.line() == f"ready http://127.0.0.1:{settings.port}\n"
    assert responds(settings.port)
    assert stack.children().keys() == {"postgres", "redis", "gateway", "workers", "beat", "flower"}
    stack.process.terminate()
    assert stack.end() == (0, "")
    output = stack.errors.read_text()
    for word in (programs.KEY, str(settings.data_dir), "/docs", str(settings.flower_port), "flower-password"):
        assert word in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_process_group_stops_everything(
    up: Callable[..., Up], number: signal.Signals
) -> None:
    stack = up()
    stack.line()
    children = stack.children()
    os.killpg(stack.process.pid, number)
    assert stack.end()[0] == 0
    assert have_ended(children)
    assert stack.children() == {}
    assert not (stack.data / "addresses.json").exists()


def test_a_stop_during_the_start_leaves_nothing(up: Callable[..., Up]) -> None:
    stack = up(gateway="wait")
    until(lambda: "gateway" in stack.children())
    children = stack.children()
    stack.process.send_signal(signal.SIGINT)
    assert stack.end() == (0, "")
    assert have_ended(children)


def test_a_child_that_ignores_the_stop_is_killed_within_30_seconds(up: Callable[..., Up]) -> None:
    stack = up(workers="deaf")
    stack.line()
    children = stack.children()
    started_at = time.monotonic()
    stack.process.terminate()
    assert stack.end()[0] == 0
    assert time.monotonic() - started_at < 30
    assert have_ended(children)


def test_a_second_signal_kills_at_once(up: Callable[..., Up]) -> None:
    stack = up(workers="deaf")
    stack.line()
    children = stack.children()
    started_at = time.monotonic()
    stack.process.send_signal(signal.SIGINT)
    stack.says("stopping")
    stack.process.send_signal(signal.SIGINT)
    stack.end()
    assert time.monotonic() - started_at < 8
    assert have_ended(children)


def test_killed_children_are_started_again_and_reported(
    up: Callable[..., Up], settings: config.Settings
) -> None:
    stack = up()
    stack.line()
    before = stack.children()
    addresses = (stack.data / "addresses.json").read_text()
    for name, pid in before.items():
        os.kill(pid, signal.SIGKILL)
        stack.says(f"{name} died")
        stack.says(f"{name} was started again")
    after = stack.children()
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert all(process_record.start_identity(pid) is not None for pid in after.values())
    assert (stack.data / "addresses.json").read_text() == addresses
    for name in ("postgres", "redis"):
        assert (stack.data / name / "port").read_text() in addresses
    until(lambda: responds(settings.port))


def test_the_children_of_a_killed_stack_are_stopped_by_the_next_one(
    up: Callable[..., Up], settings: config.Settings
) -> None:
    first = up()
    first.line()
    leftovers = first.children()
    first.process.kill()
    first.end()
    assert not any(process_record.start_identity(pid) is None for pid in leftovers.values())
    second = up()
    assert second.line() == f"ready http://127.0.0.1:{settings.port}\n"
    assert have_ended(leftovers)
    assert not set(leftovers.values()) & set(second.children().values())


def test_a_second_stack_on_the_same_directory_is_refused_in_a_clear_sentence(
    up: Callable[..., Up], settings: config.Settings
) -> None:
    up().line()
    with (
        pytest.raises(errors.Conflict, match=r"another `loci up`.*LOCI_DATA_DIR"),
        Stack(settings, commands=programs.programs()).running(),
    ):
        pass
    assert responds(settings.port)


def test_a_failing_migration_shows_its_log_and_stops_what_was_started(up: Callable[..., Up]) -> None:
    stack = up(prepare="fail")
    assert stack.end() == (1, "")
    output = stack.errors.read_text()
    assert "migrate failed (exit code 1)" in output
    assert "the schema is from the future" in output
    assert stack.children() == {}


def test_a_worker_that_ends_at_once_fails_the_start(settings: config.Settings) -> None:
    with (
        pytest.raises(StartFailed, match=r"workers ended(.|\n)*the schema is from the future"),
        Stack(settings, commands=programs.programs(workers="fail", gateway="wait")).running(),
    ):
        pass


@pytest.mark.parametrize("variable", ["LOCI_PORT", "LOCI_FLOWER_PORT"])
def test_a_port_in_use_is_named_with_the_variable_that_sets_it(
    settings: config.Settings, variable: str
) -> None:
    name = variable.removeprefix("LOCI_").lower()
    with (
        socket.create_server((ports.HOST, getattr(settings, name))),
        pytest.raises(ports.PortTaken, match=variable),
        Stack(settings, commands=programs.programs()).running(),
    ):
        pass


def test_the_programs_get_the_settings_and_find_the_addresses(
    settings: config.Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(settings.data_dir.parent)
    relative_settings = config.load(
        data_dir="data", port=settings.port, flower_port=settings.flower_port, llm_api_key="s"
    )
    with Stack(relative_settings, commands=programs.programs()).running() as running:
        note_content = note(settings)
        assert running.url == f"http://127.0.0.1:{settings.port}"
        assert running.key == programs.KEY
        seen = config.load(data_dir=running.data_dir)
        assert seen.postgres_url is not None
        assert seen.postgres_url.get_secret_value() == note_content["addresses"]["postgres_url"]
    assert note_content["environment"]["LOCI_DATA_DIR"] == str(settings.data_dir)
    assert note_content["environment"]["LOCI_PORT"] == str(settings.port)
    assert note_content["environment"]["LOCI_LLM_API_KEY"] == "s"
    assert note_content["environment"]["LOCI_QDRANT_URL"] == EXTERNAL_QDRANT
    assert note_content["addresses"].keys() == {"postgres_url", "redis_url", "flower_password"}


def test_the_local_index_alone_is_not_asked_again_for_what_was_written_a_moment_ago(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = config.load(data_dir=tmp_path)
    monkeypatch.setenv("LOCI_QDRANT_URL", "http://qdrant:6333")
    assert "LOCI_SEARCH_RECENT_SECONDS" not in data_dir.environment(settings, tmp_path)
    monkeypatch.delenv("LOCI_QDRANT_URL")
    assert data_dir.environment(settings, tmp_path)["LOCI_SEARCH_RECENT_SECONDS"] == "0"
    monkeypatch.setenv("LOCI_SEARCH_RECENT_SECONDS", "7")
    assert data_dir.environment(settings, tmp_path)["LOCI_SEARCH_RECENT_SECONDS"] == "7"


def test_addresses_of_an_earlier_run_do_not_make_a_database_external(settings: config.Settings) -> None:
    stale = {"postgres_url": "postgresql://loci:x@127.0.0.1:1/loci", "redis_url": "redis://127.0.0.1:1/0"}
    settings.data_dir.mkdir(mode=0o700)
    (settings.data_dir / "addresses.json").write_text(json.dumps(stale))
    reread = config.load(data_dir=settings.data_dir, port=settings.port, flower_port=settings.flower_port)
    assert reread.postgres_url is not None
    with Stack(reread, commands=programs.programs()).running():
        note_content = note(settings)
    assert note_content["addresses"]["postgres_url"] != stale["postgres_url"]
    assert not note_content["environment"].keys() & {"LOCI_POSTGRES_URL", "LOCI_REDIS_URL"}


def test_files_with_secrets_are_their_owners_alone(settings: config.Settings) -> None:
    with Stack(settings, commands=programs.programs()).running() as running:
        assert stat.S_IMODE(running.data_dir.stat().st_mode) == 0o700
        for name in ("addresses.json", "flower-password", "postgres/password", "redis/password"):
            assert stat.S_IMODE((running.data_dir / name).stat().st_mode) == 0o600


def test_two_stacks_run_side_by_side_and_keep_one_older_log(
    settings: config.Settings, tmp_path: Path
) -> None:
    other = config.load(
        data_dir=tmp_path / "other", port=ports.pick_free_port(), flower_port=ports.pick_free_port()
    )
    commands = programs.programs()
    with Stack(settings, commands=commands).running(), Stack(other, commands=commands).running():
        assert responds(settings.port)
        assert responds(other.port)
    with Stack(settings, commands=commands).running() as running:
        logs = {path.name for path in (running.data_dir / "logs").iterdir()}
        assert {"postgres.log", "postgres.log.1", "gateway.log", "gateway.log.1"} <= logs
