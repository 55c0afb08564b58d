"""Import a local file or folder: an export, or what a RockBot agent keeps.

A local file may have any size. Only its lines have a limit, that of an upload.
"""

from pathlib import Path
from typing import Any

from shared.foundation.scope import Caller, Scope
from shared.lifecycle.transfer import import_turns, rockbot, upload
from shared.lifecycle.transfer.import_scope import MAX_LINE_BYTES, import_lines
from shared.platform.resources import Resources


async def import_path(
    resources: Resources, caller: Caller, scope: Scope, path: Path, *, restore: bool
) -> dict[str, Any]:
    """Import a local file or folder; return {"records": report | None, "turns": report | None}.

    A file named `turns.jsonl` is a RockBot's log, of which `turns` tells; any other file has the lines of an
    export. A folder is a RockBot's memory folder, or the folder of a RockBot with both.
    Raises errors.NotFound if nothing is there.
    """
    records, log = rockbot.locate(path)
    report: dict[str, Any] = {"records": None, "turns": None}
    if records is not None and records.is_dir():
        report["records"] = await _import_folder(resources, caller, scope, records, restore=restore)
    elif records is not None:
        with records.open("rb") as file:
            lines = upload.lines_of(file, MAX_LINE_BYTES)
            report["records"] = await import_lines(resources, caller, scope, lines, restore=restore)
    if log is not None:
        report["turns"] = await import_turns.import_turns(resources, caller, scope, log)
    return report


async def _import_folder(
    resources: Resources, caller: Caller, scope: Scope, folder: Path, *, restore: bool
) -> dict[str, Any]:
    memory_folder = rockbot.memory_folder(folder)
    report = await import_lines(resources, caller, scope, memory_folder, restore=restore)
    malformed = [
        {"file": memory_folder.files[item["line"] - 1], "rule": item["rule"]} for item in report["malformed"]
    ]
    return report | {"malformed": [*memory_folder.unreadable, *malformed]}
