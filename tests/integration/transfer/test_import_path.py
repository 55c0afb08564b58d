"""Import of local files and folders: an export, a RockBot agent, and nothing."""

from collections import Counter
from pathlib import Path

import orjson
import pytest

from shared.foundation import errors
from tests.integration.transfer import scope_lines
from tests.integration.transfer.conftest import TenantStack
from tests.integration.transfer.import_reports import ADA, BOB
from tests.integration.transfer.rockbot_files import LOG, TRAINS, write_file


async def test_an_agents_folder_imports_its_memories_and_its_turn_log(
    stack: TenantStack, tmp_path: Path
) -> None:
    write_file(tmp_path, f"memory/{ADA}.json", TRAINS)
    write_file(tmp_path, "conversation-log/turns.jsonl", LOG)
    write_file(tmp_path, "skills/cook.json", {"id": BOB, "content": "no memory"})
    report = await stack.import_path(tmp_path)
    assert (report["records"]["created"], report["turns"]["created"]) == (1, 3)


async def test_an_exported_file_is_imported_from_a_path(stack: TenantStack, tmp_path: Path) -> None:
    await stack.import_lines(TRAINS)
    write_file(tmp_path, "export.ndjson", b"".join(await stack.export_lines()) + b"x" * 3_000_000 + b"\n{")
    report = await stack.import_path(tmp_path / "export.ndjson")
    assert report["turns"] is None
    assert report["records"]["skipped"] == 1
    assert [problem["line"] for problem in report["records"]["malformed"]] == [2, 3]


async def test_a_file_with_every_kind_of_record_is_imported_from_a_path(
    stack: TenantStack, tmp_path: Path
) -> None:
    long_line = b'"' + b"x" * 5_000_000 + b'"\n'
    lines = [orjson.dumps(line) + b"\n" for line in scope_lines.ALL]
    write_file(tmp_path, "export.ndjson", long_line + b"".join(lines))
    report = (await stack.import_path(tmp_path / "export.ndjson"))["records"]
    assert report["malformed"] == [{"line": 1, "rule": "line: must be at most 4194304 bytes"}]
    assert (report["created"], report["refused"]) == (len(scope_lines.ALL), [])
    assert {kind: counts["created"] for kind, counts in report["kinds"].items()} == Counter(
        line["kind"] for line in scope_lines.ALL
    )


async def test_a_path_that_does_not_exist_is_not_found(stack: TenantStack, tmp_path: Path) -> None:
    with pytest.raises(errors.NotFound):
        await stack.import_path(tmp_path / "nothing")
