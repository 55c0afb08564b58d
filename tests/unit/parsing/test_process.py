"""The process that reads a file has limits and no secrets, and is gone afterwards, whatever the file does."""

import asyncio
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from shared.memory.documents.parsed import Unreadable
from tests.unit.parsing import files
from workers.documents.parsing import run
from workers.documents.parsing.read import read
from workers.documents.parsing.run import parse


@pytest.fixture
def replace_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that lets a shell script run in place of the parser."""

    def replace(script: str) -> None:
        program = tmp_path / "parser"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(stat.S_IRWXU)
        monkeypatch.setattr(sys, "executable", str(program))

    return replace


def _stored(folder: Path, content: bytes) -> Path:
    path = folder / "upload"
    path.write_bytes(content)
    return path


def _count_open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def _refusal(path: Path, **limits: float) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        await parse(path, "name.txt", None, **limits)  # type: ignore[arg-type]
    return caught.value


async def test_a_file_is_read_as_in_this_process(tmp_path: Path) -> None:
    content = files.pdf(["Page one.", "Page two."], title="Größe")
    assert await parse(_stored(tmp_path, content), "a.pdf", None) == read(content, "a.pdf", None)


async def test_a_refusal_comes_with_its_reason(tmp_path: Path) -> None:
    refusal = await _refusal(_stored(tmp_path, files.picture_pdf()))
    assert (refusal.reason, "scanned" in refusal.detail) == ("no_text", True)


async def test_a_pdf_of_500_pages_is_read(tmp_path: Path) -> None:
    content = files.pdf([f"This is page {number}." for number in range(1, 501)])
    document = await parse(_stored(tmp_path, content), "a.pdf", None)
    assert {block.page for block in document.blocks} == set(range(1, 501))
    assert all(f"This is page {block.page}." in block.text for block in document.blocks)


async def test_a_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    path = _stored(tmp_path, b"A paragraph of a long text.\n\n" * 200_000)
    refusal = await _refusal(path, memory_mb=70)
    assert (refusal.reason, "memory" in refusal.detail) == ("too_large", True)


async def test_a_parser_that_takes_too_long_is_killed_with_what_it_started(
    tmp_path: Path, replace_parser: Callable[[str], None]
) -> None:
    replace_parser(f"sleep 600 & echo $! > {tmp_path}/child; sleep 600")
    async with asyncio.timeout(20):
        refusal = await _refusal(_stored(tmp_path, b"x"), timeout_seconds=1)
    assert (refusal.reason, "1 seconds" in refusal.detail) == ("timed_out", True)
    await _ended(int((tmp_path / "child").read_text()))


async def test_a_parser_is_killed_if_its_caller_is_cancelled(
    tmp_path: Path, replace_parser: Callable[[str], None]
) -> None:
    replace_parser(f"echo $$ > {tmp_path}/new && mv {tmp_path}/new {tmp_path}/child; exec sleep 600")
    task = asyncio.create_task(parse(_stored(tmp_path, b"x"), "a", None))
    deadline = monotonic() + 10
    while not (tmp_path / "child").exists():
        assert monotonic() < deadline
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _ended(int((tmp_path / "child").read_text()))


async def _ended(pid: int) -> None:
    """Wait until a process has ended; its parent may not have noticed yet."""
    deadline = monotonic() + 10
    while _is_running(pid):
        assert monotonic() < deadline, "the process still runs"
        await asyncio.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("end", ["kill -SEGV $$", "exit 1"])
async def test_a_parser_that_crashes_leaves_a_damaged_file(
    tmp_path: Path, replace_parser: Callable[[str], None], end: str
) -> None:
    replace_parser(end)
    assert (await _refusal(_stored(tmp_path, b"x"))).reason == "damaged"


async def test_a_parser_that_uses_up_its_processor_time_has_timed_out(
    tmp_path: Path, replace_parser: Callable[[str], None]
) -> None:
    replace_parser("kill -XCPU $$")
    assert (await _refusal(_stored(tmp_path, b"x"))).reason == "timed_out"


async def test_an_answer_that_does_not_end_is_refused(
    tmp_path: Path, replace_parser: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_MAX_ANSWER_BYTES", 1024 * 1024)
    replace_parser("exec head -c 20000000 /dev/zero")
    before = _count_open_files()
    assert (await _refusal(_stored(tmp_path, b"x"))).reason == "too_large"
    assert _count_open_files() == before, "what was left in the pipe keeps none open"


async def test_a_parser_knows_no_secret(
    tmp_path: Path, replace_parser: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCI_POSTGRES_URL", "postgresql://secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    replace_parser(f"env > {tmp_path}/environment; exit 1")
    await _refusal(_stored(tmp_path, b"x"))
    assert "secret" not in (tmp_path / "environment").read_text()


_ATTEMPTS = """
import sys, time
from workers.documents.parsing import limits
limits.apply(1, 512)
for attempt in (lambda: open(sys.argv[1], "wb", buffering=0).write(b"x"), lambda: bytearray(600 * 1024**2)):
    try:
        attempt()
    except (OSError, MemoryError) as error:
        print(type(error).__name__, flush=True)
time.sleep(60)
"""


async def test_the_limits_of_a_parser_hold_even_if_its_worker_was_killed(tmp_path: Path) -> None:
    """It may write no file and use no more memory, and its own alarm ends it."""
    command = (sys.executable, "-P", "-c", _ATTEMPTS, str(tmp_path / "file"))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(30):
        output, _ = await process.communicate()
    assert output.split() == [b"OSError", b"MemoryError"]
    assert process.returncode == -signal.SIGALRM
