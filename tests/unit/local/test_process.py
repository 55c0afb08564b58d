import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.local import process_record
from services.local.process import Process, StartFailed
from services.local.signals import Signals, Stopped

SLEEP = ["sleep", "300"]
DEAF = [
    sys.executable,
    "-c",
    "import signal,time; signal.signal(15,signal.SIG_IGN); print('deaf',flush=True); time.sleep(300)",
]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    processes: list[Process] = []

    def create(argv: list[str], signals: Signals | None = None) -> Process:
        files = {"log": tmp_path / "log", "record_file": tmp_path / "child.json"}
        processes.append(Process("child", argv, signals=signals, **files))  # type: ignore[arg-type]
        return processes[-1]

    yield create
    for process in processes:
        process.kill()


def until(condition: Callable[[], bool], within: float = 10) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


def test_a_child_leads_a_session_of_its_own(make: Callable[..., Process]) -> None:
    child = make(SLEEP)
    child.start()
    assert child.pid is not None
    assert os.getsid(child.pid) == child.pid != os.getsid(0)


def test_a_stopped_child_has_ended_and_its_record_is_removed(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    child = make(SLEEP)
    child.start()
    assert json.loads((tmp_path / "child.json").read_text())["pid"] == child.pid
    child.stop(within=5)
    assert not child.alive
    assert not (tmp_path / "child.json").exists()


def test_a_child_that_ignores_the_stop_is_killed_after_the_time_limit(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    child = make(DEAF)
    child.start()
    until(lambda: b"deaf" in (tmp_path / "log").read_bytes())
    started_at = time.monotonic()
    child.stop(within=0.3)
    assert not child.alive
    assert 0.3 <= time.monotonic() - started_at < 3


def test_a_second_request_to_stop_cuts_the_wait_short(make: Callable[..., Process], tmp_path: Path) -> None:
    signals = Signals()
    child = make(DEAF, signals)
    child.start()
    until(lambda: b"deaf" in (tmp_path / "log").read_bytes())
    signals.ask()
    threading.Timer(0.2, signals.ask).start()
    started_at = time.monotonic()
    child.stop(within=60)
    assert not child.alive
    assert time.monotonic() - started_at < 10


def test_the_children_of_a_killed_child_are_killed(make: Callable[..., Process], tmp_path: Path) -> None:
    child = make(["sh", "-c", "sleep 300 & echo $!; wait"])
    child.start()
    until(lambda: (tmp_path / "log").read_text().endswith("\n"))
    grandchild = int((tmp_path / "log").read_text())
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: not child.alive)
    until(lambda: process_record.start_identity(grandchild) is None)


def test_a_child_that_ends_while_it_is_waited_for_shows_the_end_of_its_log(
    make: Callable[..., Process],
) -> None:
    child = make(["sh", "-c", "echo no such table; exit 3"])
    child.start()
    with pytest.raises(StartFailed, match=r"exit code 3(.|\n)*no such table"):
        child.wait_until(lambda: False, within=10)


def test_waiting_for_a_child_ends_when_a_stop_is_asked_for(make: Callable[..., Process]) -> None:
    signals = Signals()
    child = make(SLEEP, signals)
    child.start()
    signals.ask()
    with pytest.raises(Stopped):
        child.wait_until(lambda: False, within=60)


def test_a_run_to_the_end_that_fails_is_an_error(make: Callable[..., Process]) -> None:
    make(["true"]).run(within=10)
    with pytest.raises(StartFailed, match="exit code 1"):
        make(["false"]).run(within=10)
    with pytest.raises(StartFailed, match=r"not done within 0\.1 s"):
        make(SLEEP).run(within=0.1)


ORPHAN = """
import sys
from pathlib import Path
from services.local.process import Process
folder = Path(sys.argv[1])
child = Process("child", ["sleep", "300"], log=folder / "log", record_file=folder / "child.json")
child.start()
print(child.pid, flush=True)
if sys.argv[2] == "stay":
    sys.stdin.read()
"""


def test_a_child_that_outlived_its_owner_is_stopped_by_the_next_start(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", ORPHAN, str(tmp_path), "leave"]
    orphan = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert process_record.start_identity(orphan) is not None
    make(SLEEP).start()
    assert process_record.start_identity(orphan) is None


def test_a_child_of_a_live_owner_is_not_stopped(make: Callable[..., Process], tmp_path: Path) -> None:
    command = [sys.executable, "-c", ORPHAN, str(tmp_path), "stay"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        owned_pid = int(owner.stdout.readline())
        with pytest.raises(process_record.StillOwned, match=str(owned_pid)):
            make(SLEEP).start()
        assert process_record.start_identity(owned_pid) is not None
        owner.kill()
        owner.wait()
    make(SLEEP).start()
    assert process_record.start_identity(owned_pid) is None


def test_an_unrelated_process_with_the_recorded_id_is_not_stopped(tmp_path: Path) -> None:
    with subprocess.Popen(SLEEP) as stranger:
        note = {
            "pid": stranger.pid,
            "born": "an earlier boot/1",
            "stop_signal": 15,
            "owner": 1,
            "owner_born": "-",
        }
        (tmp_path / "child.json").write_text(json.dumps(note))
        process_record.stop_leftovers([tmp_path / "child.json"])
        assert stranger.poll() is None
        assert not (tmp_path / "child.json").exists()
        stranger.kill()
