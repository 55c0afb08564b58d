"""A RockBot agent moves in: its memory folder and its log of turns, with what can't be read reported."""

import asyncio
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import text

from shared.conversation.sessions.open import open_session
from shared.conversation.turns import queries as turn_queries
from shared.foundation import errors
from tests.integration.transfer.conftest import TenantStack
from tests.integration.transfer.import_reports import ADA, BOB, search_ids

OLD = "2026-02-25T10:11:12.1234567+01:00"
AS_STORED = "2026-02-25T09:11:12.123456Z"
TRAINS: dict[str, Any] = {
    "id": ADA,
    "content": "Ada prefers trains.",
    "category": "user-preferences/travel",
    "tags": ["travel"],
    "createdAt": OLD,
    "updatedAt": None,
    "metadata": None,
    "importanceScore": 0.75,
    "lastSeenAt": OLD,
    "reinforcementCount": 3,
}


def write_file(folder: Path, name: str, payload: object) -> None:
    """Write a file as RockBot does, indented, or as it is."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(
        payload if isinstance(payload, bytes) else orjson.dumps(payload, option=orjson.OPT_INDENT_2)
    )


def turn(session: str, role: str, content: str, second: int) -> bytes:
    """Return a line of the log."""
    at = f"2026-02-25T10:11:{second:02}.1234567+00:00"
    payload = {"sessionId": session, "role": role, "content": content, "timestamp": at}
    return orjson.dumps(payload) + b"\n"


LOG = turn("s/1", "user", "Hello", 1) + turn("s/2", "user", "Other", 2) + turn("s/1", "assistant", "Hi", 3)


async def list_turns(stack: TenantStack, session_id: str) -> list[tuple[str, str]]:
    """Return (role, content) of a session's turns, oldest first."""
    async with stack.resources.postgres.for_tenant(stack.tenant) as connection:
        turns = await turn_queries.list_last(connection, stack.tenant, session_id, 1000)
    return [(item.role, item.content) for item in turns]


class TestMemoryFolder:
    async def test_its_entries_become_ours(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, f"user-preferences/travel/{ADA}.json", TRAINS)
        report = await stack.import_path(tmp_path)
        assert report["memories"]["created"] == 1
        (stored,) = await stack.entries()
        expected = {
            "id": ADA,
            "content": "Ada prefers trains.",
            "category": "user-preferences/travel",
            "tags": ["travel"],
            "metadata": {},
            "importance": 0.75,
            "created_at": AS_STORED,
            "last_seen_at": AS_STORED,
            "reinforcement_count": 3,
            "state": "final",
            "updated_at": None,
        }
        assert {name: stored[name] for name in expected} == expected
        assert await search_ids(stack, "trains") == [ADA]

    async def test_repeated_it_changes_nothing(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, f"a/{ADA}.json", TRAINS)
        write_file(tmp_path, "note.json", {"content": "no dates, no id"})
        await stack.import_path(tmp_path)
        before = await stack.lines()
        repeated = (await stack.import_path(tmp_path))["memories"]
        assert (repeated["created"], repeated["updated"], repeated["skipped"]) == (0, 0, 2)
        assert await stack.lines() == before

    async def test_what_it_superseded_comes_as_archived(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, f"{ADA}.json", TRAINS | {"supersededBy": BOB})
        write_file(tmp_path, f"{BOB}.json", TRAINS | {"id": BOB, "content": "Ada flies."})
        await stack.import_path(tmp_path)
        hidden, shown = await stack.entries()
        assert (hidden["state"], hidden["archived_at"], hidden["superseded_by"]) == (
            "archived",
            AS_STORED,
            [BOB],
        )
        assert shown["state"] == "final"

    async def test_the_path_tells_what_the_file_does_not(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, f"project-context/loci/{ADA}.json", {"content": "It is a memory."})
        await stack.import_path(tmp_path)
        (stored,) = await stack.entries()
        assert (stored["id"], stored["category"]) == (ADA, "project-context/loci")

    async def test_files_that_can_not_be_read_are_named(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, f"{ADA}.json", TRAINS)
        write_file(tmp_path, "a/broken.json", b'{"content":\r\n "x"')
        write_file(tmp_path, "a/empty.json", b"")
        write_file(tmp_path, "a/list.json", [1])
        write_file(tmp_path, "a/long.json", {"content": "x" * 16_001})
        write_file(tmp_path, "a/huge.json", b" " * 2_000_000)
        report = (await stack.import_path(tmp_path))["memories"]
        assert report["created"] == 1
        rules = {item["file"]: item["rule"] for item in report["malformed"]}
        assert {name: rule.partition(":")[0] for name, rule in rules.items()} == {
            "a/broken.json": "line",
            "a/empty.json": "line",
            "a/list.json": "line",
            "a/long.json": "content",
            "a/huge.json": "file",
        }

    async def test_vectors_and_hidden_files_are_no_memories(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, f"{ADA}.json", TRAINS)
        write_file(tmp_path, f".embeddings/{BOB}.json", TRAINS | {"id": BOB, "content": "a"})
        write_file(tmp_path, f"b/.{BOB}.json", TRAINS | {"id": BOB, "content": "b"})
        write_file(tmp_path, f"b/{BOB}.bin", b"\x00")
        report = (await stack.import_path(tmp_path))["memories"]
        assert (report["created"], report["malformed"]) == (1, [])

    async def test_links_that_leave_the_folder_are_ignored(self, stack: TenantStack, tmp_path: Path) -> None:
        memory, outside = tmp_path / "memory", tmp_path / "outside"
        write_file(memory, f"{ADA}.json", TRAINS)
        write_file(outside, f"{BOB}.json", TRAINS | {"id": BOB, "content": "a secret"})
        (memory / "file.json").symlink_to(outside / f"{BOB}.json")
        (memory / "folder").symlink_to(outside)
        (memory / "loop.json").symlink_to("loop.json")
        os.mkfifo(memory / "pipe.json")
        report = (await stack.import_path(memory))["memories"]
        assert report["created"] == 1
        assert {item["file"] for item in report["malformed"]} == {"file.json", "loop.json", "pipe.json"}


class TestLogOfTurns:
    async def test_its_turns_become_sessions(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, "turns.jsonl", LOG)
        report = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert report == {"created": 3, "skipped": 0, "remapped": {}, "malformed": []}
        assert await list_turns(stack, "s/1") == [("user", "Hello"), ("assistant", "Hi")]
        assert await list_turns(stack, "s/2") == [("user", "Other")]

    async def test_repeated_it_adds_nothing_even_when_requests_are_forgotten(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        write_file(tmp_path, "turns.jsonl", LOG)
        await stack.import_path(tmp_path / "turns.jsonl")
        async with stack.resources.postgres.for_tenant(stack.tenant) as connection:
            await connection.execute(text("DELETE FROM idempotent_response"))
        repeated = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert (repeated["created"], repeated["skipped"]) == (0, 3)
        assert len(await list_turns(stack, "s/1")) == 2

    async def test_a_log_that_grew_adds_what_is_new(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, "turns.jsonl", LOG)
        await stack.import_path(tmp_path / "turns.jsonl")
        write_file(tmp_path, "turns.jsonl", LOG + turn("s/1", "user", "Hello", 9))
        report = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert (report["created"], report["skipped"]) == (1, 3)
        assert [content for _, content in await list_turns(stack, "s/1")] == ["Hello", "Hi", "Hello"]

    async def test_imports_at_the_same_time_add_each_turn_once(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        write_file(tmp_path, "turns.jsonl", LOG)
        await asyncio.gather(*(stack.import_path(tmp_path / "turns.jsonl") for _ in range(4)))
        assert await list_turns(stack, "s/1") == [("user", "Hello"), ("assistant", "Hi")]

    async def test_more_than_a_batch_keeps_its_order(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, "turns.jsonl", b"".join(turn("s", "user", f"{n}", n % 60) for n in range(1100)))
        await stack.import_path(tmp_path / "turns.jsonl")
        assert [content for _, content in await list_turns(stack, "s")] == [str(n) for n in range(100, 1100)]

    @pytest.mark.parametrize(
        ("log_role", "role"),
        [("user", "user"), ("User", "user"), ("system", "system"), ("tool", "assistant"), ("", "assistant")],
    )
    async def test_whoever_is_neither_user_nor_system_is_the_assistant(
        self, stack: TenantStack, tmp_path: Path, log_role: str, role: str
    ) -> None:
        write_file(tmp_path, "turns.jsonl", turn("s", log_role, "x", 1))
        await stack.import_path(tmp_path / "turns.jsonl")
        assert await list_turns(stack, "s") == [(role, "x")]

    async def test_lines_that_can_not_be_read_are_named(self, stack: TenantStack, tmp_path: Path) -> None:
        no_time = orjson.dumps({"sessionId": "s", "role": "user", "content": "x"}) + b"\n"
        write_file(tmp_path, "turns.jsonl", b"{\n" + LOG + no_time + turn("s", "user", " ", 1))
        report = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert report["created"] == 3
        assert [(item["line"], item["rule"].partition(":")[0]) for item in report["malformed"]] == [
            (1, "line"),
            (5, "timestamp"),
            (6, "content"),
        ]

    async def test_a_session_of_another_scope_is_left_alone(self, stack: TenantStack, tmp_path: Path) -> None:
        await open_session(stack.resources, stack.caller, stack.scope("b"), session_id="s/1")
        write_file(tmp_path, "turns.jsonl", LOG + turn("with spaces", "user", "x", 1))
        first = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert set(first["remapped"]) == {"s/1", "with spaces"}
        assert await list_turns(stack, "s/1") == []
        assert len(await list_turns(stack, first["remapped"]["s/1"])) == 2
        repeated = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert (repeated["created"], repeated["remapped"]) == (0, first["remapped"])


class TestPaths:
    async def test_an_agents_folder_brings_memory_and_log(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, f"memory/{ADA}.json", TRAINS)
        write_file(tmp_path, "conversation-log/turns.jsonl", LOG)
        write_file(tmp_path, "skills/cook.json", {"id": BOB, "content": "no memory"})
        report = await stack.import_path(tmp_path)
        assert (report["memories"]["created"], report["turns"]["created"]) == (1, 3)

    async def test_an_exported_file_goes_in_again(self, stack: TenantStack, tmp_path: Path) -> None:
        await stack.import_entries(TRAINS)
        write_file(tmp_path, "export.ndjson", b"".join(await stack.lines()) + b"x" * 3_000_000 + b"\n{")
        report = await stack.import_path(tmp_path / "export.ndjson")
        assert report["turns"] is None
        assert report["memories"]["skipped"] == 1
        assert [item["line"] for item in report["memories"]["malformed"]] == [2, 3]

    async def test_a_path_to_nothing_is_not_found(self, stack: TenantStack, tmp_path: Path) -> None:
        with pytest.raises(errors.NotFound):
            await stack.import_path(tmp_path / "nothing")
