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
from tests.integration.transfer.conftest import House
from tests.integration.transfer.import_reports import ADA, BOB, found

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


def write(folder: Path, name: str, told: object) -> None:
    """Write a file as RockBot does, indented, or as it is."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(told if isinstance(told, bytes) else orjson.dumps(told, option=orjson.OPT_INDENT_2))


def turn(session: str, role: str, content: str, second: int) -> bytes:
    """Return a line of the log."""
    at = f"2026-02-25T10:11:{second:02}.1234567+00:00"
    told = {"sessionId": session, "role": role, "content": content, "timestamp": at}
    return orjson.dumps(told) + b"\n"


LOG = turn("s/1", "user", "Hello", 1) + turn("s/2", "user", "Other", 2) + turn("s/1", "assistant", "Hi", 3)


async def said(house: House, session_id: str) -> list[tuple[str, str]]:
    """Return (role, content) of a session's turns, oldest first."""
    async with house.resources.postgres.for_tenant(house.tenant) as connection:
        turns = await turn_queries.list_last(connection, house.tenant, session_id, 1000)
    return [(one.role, one.content) for one in turns]


class TestMemoryFolder:
    async def test_its_entries_become_ours(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, f"user-preferences/travel/{ADA}.json", TRAINS)
        report = await house.path(tmp_path)
        assert report["memories"]["created"] == 1
        (stored,) = await house.entries()
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
        assert await found(house, "trains") == [ADA]

    async def test_repeated_it_changes_nothing(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, f"a/{ADA}.json", TRAINS)
        write(tmp_path, "note.json", {"content": "no dates, no id"})
        await house.path(tmp_path)
        before = await house.lines()
        again = (await house.path(tmp_path))["memories"]
        assert (again["created"], again["updated"], again["skipped"]) == (0, 0, 2)
        assert await house.lines() == before

    async def test_what_it_superseded_comes_as_archived(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, f"{ADA}.json", TRAINS | {"supersededBy": BOB})
        write(tmp_path, f"{BOB}.json", TRAINS | {"id": BOB, "content": "Ada flies."})
        await house.path(tmp_path)
        hidden, shown = await house.entries()
        assert (hidden["state"], hidden["archived_at"], hidden["superseded_by"]) == (
            "archived",
            AS_STORED,
            [BOB],
        )
        assert shown["state"] == "final"

    async def test_the_path_tells_what_the_file_does_not(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, f"project-context/loci/{ADA}.json", {"content": "It is a memory."})
        await house.path(tmp_path)
        (stored,) = await house.entries()
        assert (stored["id"], stored["category"]) == (ADA, "project-context/loci")

    async def test_files_that_can_not_be_read_are_named(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, f"{ADA}.json", TRAINS)
        write(tmp_path, "a/broken.json", b'{"content":\r\n "x"')
        write(tmp_path, "a/empty.json", b"")
        write(tmp_path, "a/list.json", [1])
        write(tmp_path, "a/long.json", {"content": "x" * 16_001})
        write(tmp_path, "a/huge.json", b" " * 2_000_000)
        report = (await house.path(tmp_path))["memories"]
        assert report["created"] == 1
        rules = {one["file"]: one["rule"] for one in report["malformed"]}
        assert {name: rule.partition(":")[0] for name, rule in rules.items()} == {
            "a/broken.json": "line",
            "a/empty.json": "line",
            "a/list.json": "line",
            "a/long.json": "content",
            "a/huge.json": "file",
        }

    async def test_vectors_and_hidden_files_are_no_memories(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, f"{ADA}.json", TRAINS)
        write(tmp_path, f".embeddings/{BOB}.json", TRAINS | {"id": BOB, "content": "a"})
        write(tmp_path, f"b/.{BOB}.json", TRAINS | {"id": BOB, "content": "b"})
        write(tmp_path, f"b/{BOB}.bin", b"\x00")
        report = (await house.path(tmp_path))["memories"]
        assert (report["created"], report["malformed"]) == (1, [])

    async def test_links_that_leave_the_folder_are_not_followed(self, house: House, tmp_path: Path) -> None:
        memory, outside = tmp_path / "memory", tmp_path / "outside"
        write(memory, f"{ADA}.json", TRAINS)
        write(outside, f"{BOB}.json", TRAINS | {"id": BOB, "content": "a secret"})
        (memory / "file.json").symlink_to(outside / f"{BOB}.json")
        (memory / "folder").symlink_to(outside)
        (memory / "loop.json").symlink_to("loop.json")
        os.mkfifo(memory / "pipe.json")
        report = (await house.path(memory))["memories"]
        assert report["created"] == 1
        assert {one["file"] for one in report["malformed"]} == {"file.json", "loop.json", "pipe.json"}


class TestLogOfTurns:
    async def test_its_turns_become_sessions(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, "turns.jsonl", LOG)
        report = (await house.path(tmp_path / "turns.jsonl"))["turns"]
        assert report == {"created": 3, "skipped": 0, "remapped": {}, "malformed": []}
        assert await said(house, "s/1") == [("user", "Hello"), ("assistant", "Hi")]
        assert await said(house, "s/2") == [("user", "Other")]

    async def test_repeated_it_adds_nothing_even_when_requests_are_forgotten(
        self, house: House, tmp_path: Path
    ) -> None:
        write(tmp_path, "turns.jsonl", LOG)
        await house.path(tmp_path / "turns.jsonl")
        async with house.resources.postgres.for_tenant(house.tenant) as connection:
            await connection.execute(text("DELETE FROM idempotent_response"))
        again = (await house.path(tmp_path / "turns.jsonl"))["turns"]
        assert (again["created"], again["skipped"]) == (0, 3)
        assert len(await said(house, "s/1")) == 2

    async def test_a_log_that_grew_adds_what_is_new(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, "turns.jsonl", LOG)
        await house.path(tmp_path / "turns.jsonl")
        write(tmp_path, "turns.jsonl", LOG + turn("s/1", "user", "Hello", 9))
        report = (await house.path(tmp_path / "turns.jsonl"))["turns"]
        assert (report["created"], report["skipped"]) == (1, 3)
        assert [content for _, content in await said(house, "s/1")] == ["Hello", "Hi", "Hello"]

    async def test_imports_at_the_same_time_add_each_turn_once(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, "turns.jsonl", LOG)
        await asyncio.gather(*(house.path(tmp_path / "turns.jsonl") for _ in range(4)))
        assert await said(house, "s/1") == [("user", "Hello"), ("assistant", "Hi")]

    async def test_more_than_a_batch_keeps_its_order(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, "turns.jsonl", b"".join(turn("s", "user", f"{n}", n % 60) for n in range(1100)))
        await house.path(tmp_path / "turns.jsonl")
        assert [content for _, content in await said(house, "s")] == [str(n) for n in range(100, 1100)]

    @pytest.mark.parametrize(
        ("told", "role"),
        [("user", "user"), ("User", "user"), ("system", "system"), ("tool", "assistant"), ("", "assistant")],
    )
    async def test_whoever_is_neither_user_nor_system_is_the_assistant(
        self, house: House, tmp_path: Path, told: str, role: str
    ) -> None:
        write(tmp_path, "turns.jsonl", turn("s", told, "x", 1))
        await house.path(tmp_path / "turns.jsonl")
        assert await said(house, "s") == [(role, "x")]

    async def test_lines_that_can_not_be_read_are_named(self, house: House, tmp_path: Path) -> None:
        no_time = orjson.dumps({"sessionId": "s", "role": "user", "content": "x"}) + b"\n"
        write(tmp_path, "turns.jsonl", b"{\n" + LOG + no_time + turn("s", "user", " ", 1))
        report = (await house.path(tmp_path / "turns.jsonl"))["turns"]
        assert report["created"] == 3
        assert [(one["line"], one["rule"].partition(":")[0]) for one in report["malformed"]] == [
            (1, "line"),
            (5, "timestamp"),
            (6, "content"),
        ]

    async def test_a_session_of_another_scope_is_left_alone(self, house: House, tmp_path: Path) -> None:
        await open_session(house.resources, house.caller, house.scope("b"), session_id="s/1")
        write(tmp_path, "turns.jsonl", LOG + turn("with spaces", "user", "x", 1))
        first = (await house.path(tmp_path / "turns.jsonl"))["turns"]
        assert set(first["remapped"]) == {"s/1", "with spaces"}
        assert await said(house, "s/1") == []
        assert len(await said(house, first["remapped"]["s/1"])) == 2
        again = (await house.path(tmp_path / "turns.jsonl"))["turns"]
        assert (again["created"], again["remapped"]) == (0, first["remapped"])


class TestPaths:
    async def test_an_agents_folder_brings_memory_and_log(self, house: House, tmp_path: Path) -> None:
        write(tmp_path, f"memory/{ADA}.json", TRAINS)
        write(tmp_path, "conversation-log/turns.jsonl", LOG)
        write(tmp_path, "skills/cook.json", {"id": BOB, "content": "no memory"})
        report = await house.path(tmp_path)
        assert (report["memories"]["created"], report["turns"]["created"]) == (1, 3)

    async def test_an_exported_file_goes_in_again(self, house: House, tmp_path: Path) -> None:
        await house.take(TRAINS)
        write(tmp_path, "export.ndjson", b"".join(await house.lines()) + b"x" * 3_000_000 + b"\n{")
        report = await house.path(tmp_path / "export.ndjson")
        assert report["turns"] is None
        assert report["memories"]["skipped"] == 1
        assert [one["line"] for one in report["memories"]["malformed"]] == [2, 3]

    async def test_a_path_to_nothing_is_not_found(self, house: House, tmp_path: Path) -> None:
        with pytest.raises(errors.NotFound):
            await house.path(tmp_path / "nothing")
