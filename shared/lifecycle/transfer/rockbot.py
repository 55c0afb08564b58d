"""Read the files of a RockBot agent: its memories, one JSON file each, and its log of turns.

    <agent>/memory/{category}/{id}.json         camelCase; `.embeddings` and other dot folders are
                                                no memories
    <agent>/conversation-log/turns.jsonl        one {sessionId, role, content, timestamp} a line

Id and category come from the file, as RockBot itself reads them, and from the path only if the file has
none. Links that lead out of the folder are ignored.
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
from shared.lifecycle.transfer.row_kind import LineKind

TURNS = "turns.jsonl"
# The longest turn, with every character escaped, has 1.5 MB.
MAX_TURN_LINE = 4 * 1024 * 1024


def locate(path: Path) -> tuple[Path | None, Path | None]:
    """Return the paths of the memories and of the log of turns at a path.

    Raises errors.NotFound if nothing is there.
    """
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
    """A folder of memories that is read as lines.

    While it is read, `files` gets the name of each line's file, and `refused` the files that can't be read.
    """

    folder: Path
    files: list[str] = field(default_factory=list)
    unreadable: list[dict[str, str]] = field(default_factory=list)

    def __iter__(self) -> Iterator[bytes]:
        root = self.folder.resolve()
        for file in _json_files(self.folder):
            name = file.relative_to(self.folder).as_posix()
            try:
                raw = _read(file, root)
            except errors.Invalid as error:
                self.unreadable.append({"file": name, "rule": str(error)})
                continue
            self.files.append(name)
            yield _to_line(raw, file.relative_to(self.folder))


def memory_folder(folder: Path) -> MemoryFolder:
    """Return the memories of a folder as lines for `import_scope.import_lines`, sorted by path."""
    return MemoryFolder(folder)


def _json_files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(".json") and not name.startswith("."):
                yield Path(parent, name)


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


def _to_line(raw: bytes, relative_path: Path) -> bytes:
    """Return a file's content as one line. If it is malformed, the parser of the line reports that."""
    raw = raw.removeprefix(ndjson.BYTE_ORDER_MARK)
    try:
        payload = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw.replace(b"\r", b" ").replace(b"\n", b" ").strip() or b"null"
    if isinstance(payload, dict):
        folder = relative_path.parent.as_posix()
        named = {"id": relative_path.stem, "category": None if folder == "." else folder}
        payload = named | payload | {"kind": LineKind.MEMORY}
    return orjson.dumps(payload)


class LoggedTurn(BaseModel):
    """A line of the log of turns."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, hide_input_in_errors=True)

    session_id: str
    role: str
    content: str
    timestamp: Moment

    def draft(self) -> TurnDraft:
        """Return the validated turn. Like RockBot, treat every role but user and system as assistant."""
        name = self.role.lower()
        role = Role(name) if name in (Role.USER, Role.SYSTEM) else Role.ASSISTANT
        return TurnDraft(role=role, content=self.content, created_at=self.timestamp).validated()


@dataclass(frozen=True, slots=True)
class ImportedTurn:
    """A turn of the log, with the id of its session."""

    session_id: str
    draft: TurnDraft


def read_turns(file: Path, malformed: list[dict[str, Any]]) -> Iterator[ImportedTurn]:
    """Yield the turns of a log in their order, and append lines that can't be read to `malformed`."""
    with file.open("rb") as log:
        for number, raw in ndjson.numbered_lines(upload.lines_of(log, MAX_TURN_LINE)):
            try:
                yield _parse_turn(raw)
            except errors.Invalid as error:
                malformed.append({"line": number, "rule": str(error)})


def _parse_turn(raw: bytes) -> ImportedTurn:
    if len(raw) > MAX_TURN_LINE:
        raise errors.TooLarge("line", f"must be at most {MAX_TURN_LINE} bytes")
    turn = ndjson.parse_object(LoggedTurn, raw)
    validation.check_text(turn.session_id, "session_id", 1024)
    return ImportedTurn(turn.session_id, turn.draft())
