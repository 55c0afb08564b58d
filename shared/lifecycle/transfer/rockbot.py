"""The files of a RockBot agent: its memory, one JSON file an entry, and its log of turns.

    <agent>/memory/{category}/{id}.json         camelCase; `.embeddings` and other dot folders are
                                                no memories
    <agent>/conversation-log/turns.jsonl        one {sessionId, role, content, timestamp} a line

What is in a file is told first, its path only where the file does not say: RockBot itself reads
the category from the file. Nothing outside the folder is read, whatever links lead there.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from shared.conversation.turns.turn import TurnDraft
from shared.foundation import errors, validation
from shared.foundation.roles import Role
from shared.lifecycle.transfer import ndjson, upload
from shared.lifecycle.transfer.ndjson import Moment

TURNS = "turns.jsonl"
# A turn of the greatest length, escaped at its worst, has 1.5 MB.
MAX_TURN_LINE = 4 * 1024 * 1024


def locate(path: Path) -> tuple[Path | None, Path | None]:
    """Return where the memories and where the log of turns are at a path; NotFound if nothing is there."""
    if not path.exists():
        raise errors.NotFound(f"there is no file or folder '{path}'")
    if path.is_file():
        return (None, path) if path.name == TURNS else (path, None)
    memory, log = path / "memory", path / "conversation-log" / TURNS
    if not log.is_file():
        return path, None
    return memory if memory.is_dir() else None, log


@dataclass(slots=True)
class MemoryFolder:
    """A folder of memories, read as lines; `files` tells which file each line is from."""

    folder: Path
    files: list[str] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)

    def __iter__(self) -> Iterator[bytes]:
        root = self.folder.resolve()
        for file in _json_files(self.folder):
            name = file.relative_to(self.folder).as_posix()
            try:
                told = _read(file, root)
            except errors.Invalid as fault:
                self.refused.append({"file": name, "rule": str(fault)})
                continue
            self.files.append(name)
            yield _line(told, file.relative_to(self.folder))


def read_tree(folder: Path) -> MemoryFolder:
    """Return the memories of a folder as lines for `transfer.take_lines`, in the order of their paths."""
    return MemoryFolder(folder)


def _json_files(folder: Path) -> Iterator[Path]:
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(".json") and not name.startswith("."):
                yield Path(where, name)


def _read(file: Path, root: Path) -> bytes:
    try:
        target = file.resolve(strict=True)
        if not target.is_relative_to(root):
            raise errors.Invalid("file", "is a link that leaves the folder")
        if not target.is_file():  # a pipe would never end
            raise errors.Invalid("file", "is not a regular file")
        if target.stat().st_size > ndjson.MAX_BYTES:
            raise errors.TooLarge("file", f"must be at most {ndjson.MAX_BYTES} bytes")
        return target.read_bytes()
    except (OSError, RuntimeError) as error:
        raise errors.Invalid("file", f"can't be read: {type(error).__name__}") from None


def _line(told: bytes, place: Path) -> bytes:
    """Return a file as one line; what is wrong with it, the line's reader says."""
    told = told.removeprefix(b"\xef\xbb\xbf")
    try:
        entry = orjson.loads(told)
    except orjson.JSONDecodeError:
        return told.replace(b"\r", b" ").replace(b"\n", b" ").strip() or b"null"
    if isinstance(entry, dict):
        folder = place.parent.as_posix()
        entry = {"id": place.stem, "category": None if folder == "." else folder} | entry
    return orjson.dumps(entry)


class LoggedTurn(BaseModel):
    """A line of the log."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, hide_input_in_errors=True)

    session_id: str
    role: str
    content: str
    timestamp: Moment

    def draft(self) -> TurnDraft:
        """Return the turn, checked. RockBot replays what is neither user nor system as assistant."""
        told = self.role.lower()
        role = Role(told) if told in (Role.USER, Role.SYSTEM) else Role.ASSISTANT
        return TurnDraft(role=role, content=self.content, created_at=self.timestamp).validated()


@dataclass(frozen=True, slots=True)
class ImportedTurn:
    """A turn of a session, as its log tells it."""

    session_id: str
    draft: TurnDraft


def read_turns(file: Path, malformed: list[dict[str, Any]]) -> Iterator[ImportedTurn]:
    """Yield the turns of a log in their order; lines that can't be read are noted in `malformed`."""
    with file.open("rb") as log:
        for number, raw in enumerate(upload.lines_of(log, MAX_TURN_LINE), start=1):
            told = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            if not told.strip():
                continue
            try:
                yield _said(told)
            except errors.Invalid as fault:
                malformed.append({"line": number, "rule": str(fault)})


def _said(raw: bytes) -> ImportedTurn:
    if len(raw) > MAX_TURN_LINE:
        raise errors.TooLarge("line", f"must be at most {MAX_TURN_LINE} bytes")
    turn = ndjson.parsed(LoggedTurn, raw)
    validation.check_text(turn.session_id, "session_id", 1024)
    return ImportedTurn(turn.session_id, turn.draft())
