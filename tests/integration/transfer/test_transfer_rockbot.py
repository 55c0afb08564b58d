"""Import of the memory folder and turn log of a RockBot agent; what cannot be read is reported."""

import asyncio
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import text

from shared.conversation.sessions import read
from shared.conversation.sessions.filters import SessionFilters
from shared.conversation.sessions.open import open_session
from shared.conversation.turns import queries as turn_queries
from shared.foundation import errors
from shared.lifecycle import erasure
from shared.lifecycle.transfer import import_turns
from shared.memory.working import entries
from tests.integration.transfer.conftest import TenantStack
from tests.integration.transfer.import_reports import ADA, BOB, search_memory_ids
from tests.integration.transfer.rockbot_files import LOG, TRAINS, log_line, write_file

STORED_TIME = "2026-02-25T09:11:12.123456Z"


async def list_turns(stack: TenantStack, session_id: str) -> list[tuple[str, str]]:
    """Return (role, content) of a session's turns, oldest first."""
    async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
        turns = await turn_queries.list_last(tx, session_id, 1000)
    return [(turn.role, turn.content) for turn in turns]


class TestMemoryFolder:
    async def test_files_of_the_folder_become_memories(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, f"user-preferences/travel/{ADA}.json", TRAINS)
        report = await stack.import_path(tmp_path)
        assert report["records"]["created"] == 1
        (memory,) = await stack.export_memories()
        expected = {
            "id": ADA,
            "content": "Ada prefers trains.",
            "category": "user-preferences/travel",
            "tags": ["travel"],
            "metadata": {},
            "importance": 0.75,
            "created_at": STORED_TIME,
            "last_seen_at": STORED_TIME,
            "reinforcement_count": 3,
            "state": "final",
            "updated_at": None,
        }
        assert {name: memory[name] for name in expected} == expected
        assert await search_memory_ids(stack, "trains") == [ADA]

    async def test_a_repeated_import_of_a_folder_changes_nothing(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        write_file(tmp_path, f"a/{ADA}.json", TRAINS)
        write_file(tmp_path, "note.json", {"content": "no dates, no id", "kind": "turn"})
        await stack.import_path(tmp_path)
        lines_before = await stack.export_lines()
        second_report = (await stack.import_path(tmp_path))["records"]
        assert (second_report["created"], second_report["updated"], second_report["skipped"]) == (0, 0, 2)
        assert await stack.export_lines() == lines_before

    async def test_a_superseded_memory_is_imported_as_archived(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        write_file(tmp_path, f"{ADA}.json", TRAINS | {"supersededBy": BOB})
        write_file(tmp_path, f"{BOB}.json", TRAINS | {"id": BOB, "content": "Ada flies."})
        await stack.import_path(tmp_path)
        archived, successor = await stack.export_memories()
        assert (archived["state"], archived["archived_at"], archived["superseded_by"]) == (
            "archived",
            STORED_TIME,
            [BOB],
        )
        assert successor["state"] == "final"

    async def test_id_and_category_are_taken_from_the_path_if_the_file_has_none(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        write_file(tmp_path, f"project-context/loci/{ADA}.json", {"content": "It is a memory."})
        await stack.import_path(tmp_path)
        (memory,) = await stack.export_memories()
        assert (memory["id"], memory["category"]) == (ADA, "project-context/loci")

    async def test_files_that_cannot_be_read_are_reported(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, f"{ADA}.json", TRAINS)
        write_file(tmp_path, "a/broken.json", b'{"content":\r\n "x"')
        write_file(tmp_path, "a/empty.json", b"")
        write_file(tmp_path, "a/list.json", [1])
        write_file(tmp_path, "a/long.json", {"content": "x" * 16_001})
        write_file(tmp_path, "a/huge.json", b" " * 2_000_000)
        report = (await stack.import_path(tmp_path))["records"]
        assert report["created"] == 1
        rules_by_file = {problem["file"]: problem["rule"] for problem in report["malformed"]}
        assert {name: rule.partition(":")[0] for name, rule in rules_by_file.items()} == {
            "a/broken.json": "line",
            "a/empty.json": "line",
            "a/list.json": "line",
            "a/long.json": "content",
            "a/huge.json": "file",
        }

    async def test_embedding_files_and_hidden_files_are_ignored(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        write_file(tmp_path, f"{ADA}.json", TRAINS)
        write_file(tmp_path, f".embeddings/{BOB}.json", TRAINS | {"id": BOB, "content": "a"})
        write_file(tmp_path, f"b/.{BOB}.json", TRAINS | {"id": BOB, "content": "b"})
        write_file(tmp_path, f"b/{BOB}.bin", b"\x00")
        report = (await stack.import_path(tmp_path))["records"]
        assert (report["created"], report["malformed"]) == (1, [])

    async def test_links_that_leave_the_folder_are_ignored(self, stack: TenantStack, tmp_path: Path) -> None:
        memory_folder, outside_folder = tmp_path / "memory", tmp_path / "outside"
        write_file(memory_folder, f"{ADA}.json", TRAINS)
        write_file(outside_folder, f"{BOB}.json", TRAINS | {"id": BOB, "content": "a secret"})
        (memory_folder / "file.json").symlink_to(outside_folder / f"{BOB}.json")
        (memory_folder / "folder").symlink_to(outside_folder)
        (memory_folder / "loop.json").symlink_to("loop.json")
        os.mkfifo(memory_folder / "pipe.json")
        report = (await stack.import_path(memory_folder))["records"]
        assert report["created"] == 1
        assert {problem["file"] for problem in report["malformed"]} == {"file.json", "loop.json", "pipe.json"}


class TestTurnLog:
    async def test_the_turns_of_a_log_are_stored_in_sessions(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        write_file(tmp_path, "turns.jsonl", LOG)
        report = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert report == {"created": 3, "skipped": 0, "remapped": {}, "malformed": []}
        assert await list_turns(stack, "s/1") == [("user", "Hello"), ("assistant", "Hi")]
        assert await list_turns(stack, "s/2") == [("user", "Other")]

    async def test_a_repeated_import_of_a_log_adds_nothing_even_without_stored_responses(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        write_file(tmp_path, "turns.jsonl", LOG)
        await stack.import_path(tmp_path / "turns.jsonl")
        async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
            await tx.execute(text("DELETE FROM idempotent_response"))
        second_report = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert (second_report["created"], second_report["skipped"]) == (0, 3)
        assert len(await list_turns(stack, "s/1")) == 2

    async def test_an_extended_log_adds_only_its_new_turns(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, "turns.jsonl", LOG)
        await stack.import_path(tmp_path / "turns.jsonl")
        write_file(tmp_path, "turns.jsonl", LOG + log_line("s/1", "user", "Hello", 9))
        report = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert (report["created"], report["skipped"]) == (1, 3)
        assert [content for _, content in await list_turns(stack, "s/1")] == ["Hello", "Hi", "Hello"]

    async def test_concurrent_imports_add_each_turn_once(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(tmp_path, "turns.jsonl", LOG)
        await asyncio.gather(*(stack.import_path(tmp_path / "turns.jsonl") for _ in range(4)))
        assert await list_turns(stack, "s/1") == [("user", "Hello"), ("assistant", "Hi")]

    async def test_a_log_of_several_batches_keeps_its_order(self, stack: TenantStack, tmp_path: Path) -> None:
        write_file(
            tmp_path, "turns.jsonl", b"".join(log_line("s", "user", f"{n}", n % 60) for n in range(1100))
        )
        await stack.import_path(tmp_path / "turns.jsonl")
        assert [content for _, content in await list_turns(stack, "s")] == [str(n) for n in range(100, 1100)]

    @pytest.mark.parametrize(
        ("log_role", "role"),
        [("user", "user"), ("User", "user"), ("system", "system"), ("tool", "assistant"), ("", "assistant")],
    )
    async def test_every_role_other_than_user_and_system_becomes_assistant(
        self, stack: TenantStack, tmp_path: Path, log_role: str, role: str
    ) -> None:
        write_file(tmp_path, "turns.jsonl", log_line("s", log_role, "x", 1))
        await stack.import_path(tmp_path / "turns.jsonl")
        assert await list_turns(stack, "s") == [(role, "x")]

    async def test_log_lines_that_cannot_be_read_are_reported(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        line_without_time = orjson.dumps({"sessionId": "s", "role": "user", "content": "x"}) + b"\n"
        write_file(tmp_path, "turns.jsonl", b"{\n" + LOG + line_without_time + log_line("s", "user", " ", 1))
        report = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert report["created"] == 3
        assert [(problem["line"], problem["rule"].partition(":")[0]) for problem in report["malformed"]] == [
            (1, "line"),
            (5, "timestamp"),
            (6, "content"),
        ]

    async def test_a_session_id_of_another_scope_gets_a_new_id(
        self, stack: TenantStack, tmp_path: Path
    ) -> None:
        await open_session(
            stack.resources,
            stack.caller,
            stack.scope("b"),
            session_id="s/1",
            holds_entries=entries.holds_entries,
        )
        lines = log_line("with spaces", "user", "x", 1) + log_line("part/turns", "user", "x", 1)
        write_file(tmp_path, "turns.jsonl", LOG + lines)
        first_report = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert set(first_report["remapped"]) == {"s/1", "with spaces", "part/turns"}
        assert await list_turns(stack, "s/1") == []
        assert len(await list_turns(stack, first_report["remapped"]["s/1"])) == 2
        second_report = (await stack.import_path(tmp_path / "turns.jsonl"))["turns"]
        assert (second_report["created"], second_report["remapped"]) == (0, first_report["remapped"])

    @pytest.mark.parametrize("step", ["_open_session", "_append_missing"])
    async def test_a_user_who_is_erased_meanwhile_gets_nothing_more(
        self, stack: TenantStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        import_step = getattr(import_turns, step)

        async def erase_beside(*arguments: Any) -> Any:
            result = await import_step(*arguments) if step == "_open_session" else None
            await erasure.erase_user(stack.resources, stack.caller, "ada")
            return result or await import_step(*arguments)

        monkeypatch.setattr(import_turns, step, erase_beside)
        write_file(tmp_path, "turns.jsonl", LOG)
        ada = stack.scope(user="ada")
        with pytest.raises(errors.Conflict, match="erased meanwhile"):
            await import_turns.import_turns(stack.resources, stack.caller, ada, tmp_path / "turns.jsonl")
        sessions = await read.list_sessions(stack.resources, stack.caller, SessionFilters(), 9, None)
        assert sessions == []
