"""Files as a RockBot agent writes them."""

from pathlib import Path
from typing import Any

import orjson

from tests.integration.transfer.import_reports import ADA

ROCKBOT_TIME = "2026-02-25T10:11:12.1234567+01:00"
TRAINS: dict[str, Any] = {
    "id": ADA,
    "content": "Ada prefers trains.",
    "category": "user-preferences/travel",
    "tags": ["travel"],
    "createdAt": ROCKBOT_TIME,
    "updatedAt": None,
    "metadata": None,
    "importanceScore": 0.75,
    "lastSeenAt": ROCKBOT_TIME,
    "reinforcementCount": 3,
}


def write_file(folder: Path, name: str, content: object) -> None:
    """Write a file: bytes as they are, anything else as indented JSON, as RockBot does."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(
        content if isinstance(content, bytes) else orjson.dumps(content, option=orjson.OPT_INDENT_2)
    )


def log_line(session: str, role: str, content: str, second: int) -> bytes:
    """Return a line of the turn log."""
    timestamp = f"2026-02-25T10:11:{second:02}.1234567+00:00"
    fields = {"sessionId": session, "role": role, "content": content, "timestamp": timestamp}
    return orjson.dumps(fields) + b"\n"


LOG = (
    log_line("s/1", "user", "Hello", 1)
    + log_line("s/2", "user", "Other", 2)
    + log_line("s/1", "assistant", "Hi", 3)
)
