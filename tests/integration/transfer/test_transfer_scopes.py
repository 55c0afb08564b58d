"""Imports and other scopes, duplicates, tombstones and memories that are pending enrichment."""

import pytest

from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.lifecycle.transfer import memory_lines
from shared.memory.longterm import archive
from tests.integration.transfer.conftest import TenantStack
from tests.integration.transfer.import_reports import (
    ADA,
    ARCHIVED,
    BOB,
    FULL,
    LATER,
    list_pending_enrichments,
    minimal_line,
    save_memory,
    search_memory_ids,
)


class TestAcrossScopes:
    async def test_an_import_into_another_agent_maps_ids_and_references(self, stack: TenantStack) -> None:
        await stack.import_lines(FULL, ARCHIVED)
        other_scope = stack.scope("b")
        report = await stack.import_lines(*await stack.export_lines(), scope=other_scope)
        assert report["created"] == 2
        new_ids = report["remapped"]
        assert set(new_ids) == {ADA, BOB}
        imported_by_id = {memory["id"]: memory for memory in await stack.export_memories(other_scope)}
        assert imported_by_id[new_ids[ADA]] == FULL | {
            "id": new_ids[ADA],
            "derived_from": [new_ids[BOB]],
            "agent_id": "b",
        }
        assert imported_by_id[new_ids[BOB]]["superseded_by"] == [new_ids[ADA]]
        assert await stack.export_memories() == [FULL, ARCHIVED]

    async def test_an_import_into_a_user_of_the_same_agent_maps_ids_too(self, stack: TenantStack) -> None:
        await stack.import_lines(FULL, ARCHIVED)
        report = await stack.import_lines(*await stack.export_lines(), scope=stack.scope(user="u"))
        new_ada, new_bob = (report["remapped"][memory_id] for memory_id in (ADA, BOB))
        imported_by_id = {
            memory["id"]: memory for memory in await stack.export_memories(stack.scope(user="u"))
        }
        assert imported_by_id[new_bob]["superseded_by"] == [new_ada]

    async def test_a_repeated_import_into_another_scope_changes_nothing(self, stack: TenantStack) -> None:
        await stack.import_lines(FULL, ARCHIVED)
        first_report = await stack.import_lines(FULL, ARCHIVED, scope=stack.scope("b"))
        second_report = await stack.import_lines(FULL, ARCHIVED, scope=stack.scope("b"))
        assert (second_report["created"], second_report["updated"], second_report["skipped"]) == (0, 0, 2)
        assert second_report["remapped"] == first_report["remapped"]

    async def test_a_reference_to_a_memory_of_another_scope_has_no_effect(self, stack: TenantStack) -> None:
        other_memory = await save_memory(stack, "a secret of Bob", stack.scope(user="bob"))
        await stack.import_lines(
            minimal_line(
                ADA, "bait", state="archived", archived_at=LATER, superseded_by=[other_memory["id"]]
            ),
            scope=stack.scope(user="eve"),
        )
        saved_memory = await save_memory(stack, "bait", stack.scope(user="eve"))
        assert saved_memory["content"] == "bait"
        assert (await stack.export_memories(stack.scope(user="bob")))[0]["reinforcement_count"] == 1

    async def test_ids_in_another_format_are_replaced_by_new_ids(self, stack: TenantStack) -> None:
        lines = (minimal_line("note-1", "one", superseded_by=["note 2"]), minimal_line("note 2", "two"))
        report = await stack.import_lines(*lines)
        new_ids = report["remapped"]
        memories_by_id = {memory["id"]: memory for memory in await stack.export_memories()}
        assert memories_by_id[new_ids["note-1"]]["superseded_by"] == [new_ids["note 2"]]
        assert len(new_ids["note 2"]) == 12
        assert (await stack.import_lines(*lines))["skipped"] == 2


class TestDuplicates:
    async def test_a_text_that_a_live_memory_has_is_reported_and_not_stored(self, stack: TenantStack) -> None:
        existing = await save_memory(stack, "Ada likes  TRAINS")
        report = await stack.import_lines(minimal_line(ADA, "ada likes trains"), minimal_line(BOB, "new"))
        assert report["duplicates"] == [{"id": ADA, "of": existing["id"]}]
        assert {memory["content"] for memory in await stack.export_memories()} == {"Ada likes  TRAINS", "new"}
        assert (await stack.export_memories())[0]["reinforcement_count"] == 1

    async def test_two_lines_with_the_same_text_are_stored_as_one_memory(self, stack: TenantStack) -> None:
        report = await stack.import_lines(minimal_line(ADA, "same"), minimal_line(BOB, "same"))
        assert (report["created"], report["duplicates"]) == (1, [{"id": BOB, "of": ADA}])

    async def test_an_update_to_the_text_of_another_memory_is_reported_and_not_stored(
        self, stack: TenantStack
    ) -> None:
        await stack.import_lines(minimal_line(ADA, "one"), minimal_line(BOB, "two"))
        report = await stack.import_lines(minimal_line(ADA, "two"))
        assert report["duplicates"] == [{"id": ADA, "of": BOB}]
        assert [memory["content"] for memory in await stack.export_memories()] == ["one", "two"]

    async def test_an_archived_memory_may_have_the_text_of_a_live_memory(self, stack: TenantStack) -> None:
        report = await stack.import_lines(minimal_line(ADA, "x", archived_at=LATER), minimal_line(BOB, "x"))
        assert report["created"] == 2

    @pytest.mark.parametrize("batch_size", [1, 200])
    async def test_a_text_whose_memory_a_later_line_archives_is_stored_by_the_first_import(
        self, stack: TenantStack, monkeypatch: pytest.MonkeyPatch, batch_size: int
    ) -> None:
        monkeypatch.setattr(memory_lines, "_BATCH", batch_size)
        await stack.import_lines(minimal_line("0000000000cc", "x"))
        archiving_line = minimal_line(
            "0000000000cc", "x", state="archived", archived_at=LATER, superseded_by=[ADA]
        )
        report = await stack.import_lines(minimal_line(ADA, "x"), archiving_line)
        assert (report["created"], report["updated"], report["duplicates"]) == (1, 1, [])
        assert (await stack.import_lines(minimal_line(ADA, "x"), archiving_line))["skipped"] == 2


class TestTombstones:
    async def test_a_deleted_memory_is_reported_and_not_imported(self, stack: TenantStack) -> None:
        await stack.import_lines(FULL)
        exported_lines = await stack.export_lines()
        await delete_memory_everywhere.delete_memory(stack.resources, stack.caller, ADA)
        report = await stack.import_lines(*exported_lines)
        assert (report["created"], report["tombstoned"]) == (0, [ADA])
        assert await stack.export_memories() == []

    async def test_an_update_does_not_bring_a_deleted_text_back(self, stack: TenantStack) -> None:
        await stack.import_lines(minimal_line(ADA, "secret"), minimal_line(BOB, "plain"))
        await delete_memory_everywhere.delete_memory(stack.resources, stack.caller, ADA)
        report = await stack.import_lines(minimal_line(BOB, "Secret"))
        assert report["tombstoned"] == [BOB]
        assert [memory["content"] for memory in await stack.export_memories()] == ["plain"]

    async def test_only_an_import_with_restore_makes_live_what_a_caller_archived(
        self, stack: TenantStack
    ) -> None:
        """A live memory that says the same can be updated, and the archived one while it stays archived."""
        await stack.import_lines(minimal_line(ADA, "x", key="a"), minimal_line(BOB, "x", key="b"))
        exported_lines = await stack.export_lines()
        await archive.archive(stack.resources, stack.caller, ADA)
        report = await stack.import_lines(exported_lines[0], minimal_line(BOB, "x", importance=0.9))
        assert (report["updated"], report["tombstoned"]) == (1, [ADA])
        assert (await stack.import_lines(minimal_line(ADA, "x", importance=0.9)))["updated"] == 1
        assert await search_memory_ids(stack, "x") == [BOB]
        assert (await stack.import_lines(exported_lines[0], restore=True))["updated"] == 1
        assert set(await search_memory_ids(stack, "x")) == {ADA, BOB}

    async def test_an_import_with_restore_brings_a_memory_back_and_removes_its_tombstone(
        self, stack: TenantStack
    ) -> None:
        await stack.import_lines(FULL)
        exported_lines = await stack.export_lines()
        await delete_memory_everywhere.delete_memory(stack.resources, stack.caller, ADA)
        assert (await stack.import_lines(*exported_lines, restore=True))["created"] == 1
        assert await stack.export_lines() == exported_lines
        assert await search_memory_ids(stack, "trains") == [ADA]
        await stack.import_lines(FULL | {"content": "else", "occurred_at": None})
        assert (await stack.import_lines(*exported_lines))["tombstoned"] == []


class TestPending:
    async def test_without_a_model_a_pending_line_is_stored_as_final(self, stack: TenantStack) -> None:
        await stack.import_lines(minimal_line(ADA, "raw", state="pending"))
        assert [memory["state"] for memory in await stack.export_memories()] == ["final"]
        assert await list_pending_enrichments(stack) == set()
        assert (await stack.import_lines(minimal_line(ADA, "raw", state="pending")))["skipped"] == 1

    async def test_with_a_model_a_pending_line_gets_an_enrichment_job(
        self, stack_with_model: TenantStack
    ) -> None:
        await stack_with_model.import_lines(
            minimal_line(ADA, "raw", state="pending"), minimal_line(BOB, "fact", state="final")
        )
        assert [memory["state"] for memory in await stack_with_model.export_memories()] == [
            "pending",
            "final",
        ]
        assert await list_pending_enrichments(stack_with_model) == {ADA}

    async def test_a_pending_line_does_not_undo_an_enrichment(self, stack_with_model: TenantStack) -> None:
        await stack_with_model.import_lines(
            minimal_line(ADA, "raw", state="archived", archived_at=LATER, superseded_by=[BOB])
        )
        lines_before = await stack_with_model.export_lines()
        assert (await stack_with_model.import_lines(minimal_line(ADA, "raw", state="pending")))[
            "skipped"
        ] == 1
        assert await stack_with_model.export_lines() == lines_before

    async def test_a_final_line_cancels_the_enrichment_of_a_pending_memory(
        self, stack_with_model: TenantStack
    ) -> None:
        await stack_with_model.import_lines(minimal_line(ADA, "raw", state="pending"))
        await stack_with_model.import_lines(minimal_line(ADA, "raw", state="final"))
        assert await list_pending_enrichments(stack_with_model) == set()
