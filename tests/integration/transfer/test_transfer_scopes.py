"""What an import leaves alone: other scopes, what is said already, what was deleted, what went on."""

import pytest

from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.lifecycle.transfer import transfer
from tests.integration.transfer.conftest import TenantStack
from tests.integration.transfer.import_reports import (
    ADA,
    ARCHIVED,
    BOB,
    FULL,
    LATER,
    minimal_line,
    pending_enrichments,
    save_memory,
    search_ids,
)


class TestAcrossScopes:
    async def test_into_another_agent_ids_are_new_and_references_follow(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL, ARCHIVED)
        other = stack.scope("b")
        report = await stack.import_entries(*await stack.lines(), scope=other)
        assert report["created"] == 2
        new = report["remapped"]
        assert set(new) == {ADA, BOB}
        moved = {item["id"]: item for item in await stack.entries(other)}
        assert moved[new[ADA]] == FULL | {"id": new[ADA], "derived_from": [new[BOB]], "agent_id": "b"}
        assert moved[new[BOB]]["superseded_by"] == [new[ADA]]
        assert await stack.entries() == [FULL, ARCHIVED]

    async def test_into_a_user_of_the_same_agent_ids_are_new_too(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL, ARCHIVED)
        report = await stack.import_entries(*await stack.lines(), scope=stack.scope(user="u"))
        (first, second) = (report["remapped"][item] for item in (ADA, BOB))
        moved = {item["id"]: item for item in await stack.entries(stack.scope(user="u"))}
        assert moved[second]["superseded_by"] == [first]

    async def test_repeated_it_changes_nothing(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL, ARCHIVED)
        first = await stack.import_entries(FULL, ARCHIVED, scope=stack.scope("b"))
        repeated = await stack.import_entries(FULL, ARCHIVED, scope=stack.scope("b"))
        assert (repeated["created"], repeated["updated"], repeated["skipped"]) == (0, 0, 2)
        assert repeated["remapped"] == first["remapped"]

    async def test_a_reference_never_leads_into_another_scope(self, stack: TenantStack) -> None:
        other_memory = await save_memory(stack, "a secret of Bob", stack.scope(user="bob"))
        await stack.import_entries(
            minimal_line(
                ADA, "bait", state="archived", archived_at=LATER, superseded_by=[other_memory["id"]]
            ),
            scope=stack.scope(user="eve"),
        )
        answer = await save_memory(stack, "bait", stack.scope(user="eve"))
        assert answer["content"] == "bait"
        assert (await stack.entries(stack.scope(user="bob")))[0]["reinforcement_count"] == 1

    async def test_ids_of_other_makes_become_ours(self, stack: TenantStack) -> None:
        lines = (minimal_line("note-1", "one", superseded_by=["note 2"]), minimal_line("note 2", "two"))
        report = await stack.import_entries(*lines)
        new = report["remapped"]
        stored = {item["id"]: item for item in await stack.entries()}
        assert stored[new["note-1"]]["superseded_by"] == [new["note 2"]]
        assert len(new["note 2"]) == 12
        assert (await stack.import_entries(*lines))["skipped"] == 2


class TestDuplicates:
    async def test_what_another_live_entry_says_is_reported_and_not_stored(self, stack: TenantStack) -> None:
        existing = await save_memory(stack, "Ada likes  TRAINS")
        report = await stack.import_entries(minimal_line(ADA, "ada likes trains"), minimal_line(BOB, "new"))
        assert report["duplicates"] == [{"id": ADA, "of": existing["id"]}]
        assert {item["content"] for item in await stack.entries()} == {"Ada likes  TRAINS", "new"}
        assert (await stack.entries())[0]["reinforcement_count"] == 1

    async def test_two_lines_that_say_the_same_are_one_entry(self, stack: TenantStack) -> None:
        report = await stack.import_entries(minimal_line(ADA, "same"), minimal_line(BOB, "same"))
        assert (report["created"], report["duplicates"]) == (1, [{"id": BOB, "of": ADA}])

    async def test_an_update_into_what_another_says_is_left_alone(self, stack: TenantStack) -> None:
        await stack.import_entries(minimal_line(ADA, "one"), minimal_line(BOB, "two"))
        report = await stack.import_entries(minimal_line(ADA, "two"))
        assert report["duplicates"] == [{"id": ADA, "of": BOB}]
        assert [item["content"] for item in await stack.entries()] == ["one", "two"]

    async def test_archived_entries_may_say_what_a_live_one_says(self, stack: TenantStack) -> None:
        report = await stack.import_entries(minimal_line(ADA, "x", archived_at=LATER), minimal_line(BOB, "x"))
        assert report["created"] == 2

    @pytest.mark.parametrize("lines_of_a_batch", [1, 200])
    async def test_a_fact_that_a_later_line_frees_is_stored_the_first_time(
        self, stack: TenantStack, monkeypatch: pytest.MonkeyPatch, lines_of_a_batch: int
    ) -> None:
        monkeypatch.setattr(transfer, "_BATCH", lines_of_a_batch)
        await stack.import_entries(minimal_line("0000000000cc", "x"))
        freed = minimal_line("0000000000cc", "x", state="archived", archived_at=LATER, superseded_by=[ADA])
        report = await stack.import_entries(minimal_line(ADA, "x"), freed)
        assert (report["created"], report["updated"], report["duplicates"]) == (1, 1, [])
        assert (await stack.import_entries(minimal_line(ADA, "x"), freed))["skipped"] == 2


class TestTombstones:
    async def test_what_was_deleted_on_purpose_is_reported_and_stays_away(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL)
        exported = await stack.lines()
        await delete_memory_everywhere.delete_memory(stack.resources, stack.caller, ADA)
        report = await stack.import_entries(*exported)
        assert (report["created"], report["tombstoned"]) == (0, [ADA])
        assert await stack.entries() == []

    async def test_an_update_does_not_bring_a_deleted_text_back_either(self, stack: TenantStack) -> None:
        await stack.import_entries(minimal_line(ADA, "secret"), minimal_line(BOB, "plain"))
        await delete_memory_everywhere.delete_memory(stack.resources, stack.caller, ADA)
        report = await stack.import_entries(minimal_line(BOB, "Secret"))
        assert report["tombstoned"] == [BOB]
        assert [item["content"] for item in await stack.entries()] == ["plain"]

    async def test_an_entry_that_still_says_it_is_no_return_of_it(self, stack: TenantStack) -> None:
        await stack.import_entries(minimal_line(ADA, "x", archived_at=LATER), minimal_line(BOB, "x"))
        await delete_memory_everywhere.delete_memory(stack.resources, stack.caller, ADA)
        report = await stack.import_entries(
            minimal_line(ADA, "x", archived_at=LATER), minimal_line(BOB, "x", importance=0.9)
        )
        assert (report["updated"], report["tombstoned"]) == (1, [ADA])

    async def test_restoring_brings_it_back_and_lifts_the_tombstone(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL)
        exported = await stack.lines()
        await delete_memory_everywhere.delete_memory(stack.resources, stack.caller, ADA)
        assert (await stack.import_entries(*exported, restore=True))["created"] == 1
        assert await stack.lines() == exported
        assert await search_ids(stack, "trains") == [ADA]
        await stack.import_entries(FULL | {"content": "else", "occurred_at": None})
        assert (await stack.import_entries(*exported))["tombstoned"] == []


class TestPending:
    async def test_without_a_model_nothing_waits_for_one(self, stack: TenantStack) -> None:
        await stack.import_entries(minimal_line(ADA, "raw", state="pending"))
        assert [item["state"] for item in await stack.entries()] == ["final"]
        assert await pending_enrichments(stack) == set()
        assert (await stack.import_entries(minimal_line(ADA, "raw", state="pending")))["skipped"] == 1

    async def test_with_a_model_it_is_enriched_here(self, enriching: TenantStack) -> None:
        await enriching.import_entries(
            minimal_line(ADA, "raw", state="pending"), minimal_line(BOB, "fact", state="final")
        )
        assert [item["state"] for item in await enriching.entries()] == ["pending", "final"]
        assert await pending_enrichments(enriching) == {ADA}

    async def test_it_does_not_undo_an_enrichment(self, enriching: TenantStack) -> None:
        await enriching.import_entries(
            minimal_line(ADA, "raw", state="archived", archived_at=LATER, superseded_by=[BOB])
        )
        before = await enriching.lines()
        assert (await enriching.import_entries(minimal_line(ADA, "raw", state="pending")))["skipped"] == 1
        assert await enriching.lines() == before

    async def test_what_is_final_by_an_import_is_enriched_no_more(self, enriching: TenantStack) -> None:
        await enriching.import_entries(minimal_line(ADA, "raw", state="pending"))
        await enriching.import_entries(minimal_line(ADA, "raw", state="final"))
        assert await pending_enrichments(enriching) == set()
