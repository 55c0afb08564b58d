"""What an import leaves alone: other scopes, what is said already, what was deleted, what went on."""

import pytest

from shared.lifecycle import delete_memory as delete_memory_everywhere
from shared.lifecycle.transfer import transfer
from tests.integration.transfer.conftest import House
from tests.integration.transfer.import_reports import (
    ADA,
    ARCHIVED,
    BOB,
    FULL,
    LATER,
    enrichment,
    entry,
    found,
    saved,
)


class TestAcrossScopes:
    async def test_into_another_agent_ids_are_new_and_references_follow(self, house: House) -> None:
        await house.take(FULL, ARCHIVED)
        other = house.scope("b")
        report = await house.take(*await house.lines(), scope=other)
        assert report["created"] == 2
        new = report["remapped"]
        assert set(new) == {ADA, BOB}
        moved = {one["id"]: one for one in await house.entries(other)}
        assert moved[new[ADA]] == FULL | {"id": new[ADA], "derived_from": [new[BOB]], "agent_id": "b"}
        assert moved[new[BOB]]["superseded_by"] == [new[ADA]]
        assert await house.entries() == [FULL, ARCHIVED]

    async def test_into_a_user_of_the_same_agent_ids_are_new_too(self, house: House) -> None:
        await house.take(FULL, ARCHIVED)
        report = await house.take(*await house.lines(), scope=house.scope(user="u"))
        (first, second) = (report["remapped"][one] for one in (ADA, BOB))
        moved = {one["id"]: one for one in await house.entries(house.scope(user="u"))}
        assert moved[second]["superseded_by"] == [first]

    async def test_repeated_it_changes_nothing(self, house: House) -> None:
        await house.take(FULL, ARCHIVED)
        first = await house.take(FULL, ARCHIVED, scope=house.scope("b"))
        again = await house.take(FULL, ARCHIVED, scope=house.scope("b"))
        assert (again["created"], again["updated"], again["skipped"]) == (0, 0, 2)
        assert again["remapped"] == first["remapped"]

    async def test_a_reference_never_leads_into_another_scope(self, house: House) -> None:
        theirs = await saved(house, "a secret of Bob", house.scope(user="bob"))
        await house.take(
            entry(ADA, "bait", state="archived", archived_at=LATER, superseded_by=[theirs["id"]]),
            scope=house.scope(user="eve"),
        )
        answer = await saved(house, "bait", house.scope(user="eve"))
        assert answer["content"] == "bait"
        assert (await house.entries(house.scope(user="bob")))[0]["reinforcement_count"] == 1

    async def test_ids_of_other_makes_become_ours(self, house: House) -> None:
        lines = (entry("note-1", "one", superseded_by=["note 2"]), entry("note 2", "two"))
        report = await house.take(*lines)
        new = report["remapped"]
        stored = {one["id"]: one for one in await house.entries()}
        assert stored[new["note-1"]]["superseded_by"] == [new["note 2"]]
        assert len(new["note 2"]) == 12
        assert (await house.take(*lines))["skipped"] == 2


class TestDuplicates:
    async def test_what_another_live_entry_says_is_reported_and_not_stored(self, house: House) -> None:
        here = await saved(house, "Ada likes  TRAINS")
        report = await house.take(entry(ADA, "ada likes trains"), entry(BOB, "new"))
        assert report["duplicates"] == [{"id": ADA, "of": here["id"]}]
        assert {one["content"] for one in await house.entries()} == {"Ada likes  TRAINS", "new"}
        assert (await house.entries())[0]["reinforcement_count"] == 1

    async def test_two_lines_that_say_the_same_are_one_entry(self, house: House) -> None:
        report = await house.take(entry(ADA, "same"), entry(BOB, "same"))
        assert (report["created"], report["duplicates"]) == (1, [{"id": BOB, "of": ADA}])

    async def test_an_update_into_what_another_says_is_left_alone(self, house: House) -> None:
        await house.take(entry(ADA, "one"), entry(BOB, "two"))
        report = await house.take(entry(ADA, "two"))
        assert report["duplicates"] == [{"id": ADA, "of": BOB}]
        assert [one["content"] for one in await house.entries()] == ["one", "two"]

    async def test_archived_entries_may_say_what_a_live_one_says(self, house: House) -> None:
        report = await house.take(entry(ADA, "x", archived_at=LATER), entry(BOB, "x"))
        assert report["created"] == 2

    @pytest.mark.parametrize("lines_of_a_batch", [1, 200])
    async def test_a_fact_that_a_later_line_frees_is_stored_the_first_time(
        self, house: House, monkeypatch: pytest.MonkeyPatch, lines_of_a_batch: int
    ) -> None:
        monkeypatch.setattr(transfer, "_BATCH", lines_of_a_batch)
        await house.take(entry("0000000000cc", "x"))
        freed = entry("0000000000cc", "x", state="archived", archived_at=LATER, superseded_by=[ADA])
        report = await house.take(entry(ADA, "x"), freed)
        assert (report["created"], report["updated"], report["duplicates"]) == (1, 1, [])
        assert (await house.take(entry(ADA, "x"), freed))["skipped"] == 2


class TestTombstones:
    async def test_what_was_deleted_on_purpose_is_reported_and_stays_away(self, house: House) -> None:
        await house.take(FULL)
        exported = await house.lines()
        await delete_memory_everywhere.delete_memory(house.resources, house.caller, ADA)
        report = await house.take(*exported)
        assert (report["created"], report["tombstoned"]) == (0, [ADA])
        assert await house.entries() == []

    async def test_an_update_does_not_bring_a_deleted_text_back_either(self, house: House) -> None:
        await house.take(entry(ADA, "secret"), entry(BOB, "plain"))
        await delete_memory_everywhere.delete_memory(house.resources, house.caller, ADA)
        report = await house.take(entry(BOB, "Secret"))
        assert report["tombstoned"] == [BOB]
        assert [one["content"] for one in await house.entries()] == ["plain"]

    async def test_an_entry_that_still_says_it_is_no_return_of_it(self, house: House) -> None:
        await house.take(entry(ADA, "x", archived_at=LATER), entry(BOB, "x"))
        await delete_memory_everywhere.delete_memory(house.resources, house.caller, ADA)
        report = await house.take(entry(ADA, "x", archived_at=LATER), entry(BOB, "x", importance=0.9))
        assert (report["updated"], report["tombstoned"]) == (1, [ADA])

    async def test_restoring_brings_it_back_and_lifts_the_tombstone(self, house: House) -> None:
        await house.take(FULL)
        exported = await house.lines()
        await delete_memory_everywhere.delete_memory(house.resources, house.caller, ADA)
        assert (await house.take(*exported, restore=True))["created"] == 1
        assert await house.lines() == exported
        assert await found(house, "trains") == [ADA]
        await house.take(FULL | {"content": "else", "occurred_at": None})
        assert (await house.take(*exported))["tombstoned"] == []


class TestPending:
    async def test_without_a_model_nothing_waits_for_one(self, house: House) -> None:
        await house.take(entry(ADA, "raw", state="pending"))
        assert [one["state"] for one in await house.entries()] == ["final"]
        assert await enrichment(house) == set()
        assert (await house.take(entry(ADA, "raw", state="pending")))["skipped"] == 1

    async def test_with_a_model_it_is_enriched_here(self, enriching: House) -> None:
        await enriching.take(entry(ADA, "raw", state="pending"), entry(BOB, "fact", state="final"))
        assert [one["state"] for one in await enriching.entries()] == ["pending", "final"]
        assert await enrichment(enriching) == {ADA}

    async def test_it_does_not_undo_an_enrichment(self, enriching: House) -> None:
        await enriching.take(entry(ADA, "raw", state="archived", archived_at=LATER, superseded_by=[BOB]))
        before = await enriching.lines()
        assert (await enriching.take(entry(ADA, "raw", state="pending")))["skipped"] == 1
        assert await enriching.lines() == before

    async def test_what_is_final_by_an_import_is_enriched_no_more(self, enriching: House) -> None:
        await enriching.take(entry(ADA, "raw", state="pending"))
        await enriching.take(entry(ADA, "raw", state="final"))
        assert await enrichment(enriching) == set()
