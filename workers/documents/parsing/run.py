"""Run the process that reads a file, and end it if it takes too long."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

import orjson

from shared.memory.documents.parsed import Block, ParsedDocument, Unreadable

_MAX_ANSWER_BYTES = 128 * 1024 * 1024
_READ_BYTES = 1024 * 1024


async def parse(
    content: Path,
    file_name: str,
    declared_type: str | None,
    *,
    timeout_seconds: float = 60,
    memory_mb: int = 1024,
) -> ParsedDocument:
    """Return the text of the file at an absolute path, which was uploaded as `file_name`.

    A process of its own reads it, without this one's environment, which holds secrets. It is killed with all
    that it may have started if it takes longer than `timeout_seconds`, or if this call is cancelled. Raises
    Unreadable with the reason if the file has no text that can be read.
    """
    words = (str(content), file_name, declared_type or "", str(timeout_seconds), str(memory_mb))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "workers.documents.parsing"),
        *words,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
        env={"PATH": os.defpath},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_seconds):
            answer = await _read_answer(process)
            exit_code = await process.wait()
    except TimeoutError:
        raise _timed_out(timeout_seconds) from None
    finally:
        await _end(process)
    if exit_code == -signal.SIGXCPU:
        raise _timed_out(timeout_seconds)
    if exit_code != 0:
        raise Unreadable("damaged", "The file stopped the program that reads it.")
    return await asyncio.to_thread(_from_json, answer)


async def _read_answer(process: Process) -> bytes:
    if process.stdout is None:
        raise RuntimeError("the process has no pipe to read from")
    parts: list[bytes] = []
    length = 0
    while part := await process.stdout.read(_READ_BYTES):
        length += len(part)
        if length > _MAX_ANSWER_BYTES:
            raise Unreadable("too_large", "The file holds more text than is stored: divide it.")
        parts.append(part)
    return b"".join(parts)


async def _end(process: Process) -> None:
    """Kill the process and all that it started, and wait until it has ended.

    The pipe is read to its end, which closes it: what is left in a pipe that nobody reads keeps it open.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await asyncio.shield(_read_to_the_end(process))


async def _read_to_the_end(process: Process) -> None:
    while process.stdout is not None and await process.stdout.read(_READ_BYTES):
        continue
    await process.wait()


def _timed_out(timeout_seconds: float) -> Unreadable:
    return Unreadable("timed_out", f"The file took longer than {timeout_seconds:g} seconds to be read.")


def _from_json(answer: bytes) -> ParsedDocument:
    *block_lines, last_line = answer.splitlines()
    fields = orjson.loads(last_line)
    if "reason" in fields:
        raise Unreadable(fields["reason"], fields["detail"])
    blocks = tuple(Block(*orjson.loads(line)) for line in block_lines)
    return ParsedDocument(fields["title"], fields["media_type"], blocks)
