"""Taking a scope's memory out and in: nothing is lost, doubled or reinforced."""

import asyncio
from typing import Any

import orjson
import pytest
from sqlalchemy import text

from shared.foundation import config, errors
from shared.lifecycle.transfer import ndjson, transfer, upload
from shared.memory.longterm import history, update
from shared.platform.resources import open_resources
from tests.integration.transfer.conftest import House, new_house
from tests.integration.transfer.import_reports import (
    ADA,
    ARCHIVED,
    BOB,
    FULL,
    LATER,
    THEN,
    entry,
    found,
    histories,
    line_of,
    saved,
    versions,
)


class TestExport:
    async def test_every_field_goes_out_as_it_came_in(self, house: House) -> None:
        report = await house.take(FULL, ARCHIVED)
        assert report["created"] == 2
        assert await house.entries() == [FULL, ARCHIVED]

    async def test_it_holds_exactly_the_scope_that_is_named(self, house: House) -> None:
        await house.take(entry(ADA, "common"))
        await house.take(entry(BOB, "Bob's"), scope=house.scope(user="bob"))
        await house.take(entry("0000000000cc", "another agent's"), scope=house.scope("b"))
        assert [one["content"] for one in await house.entries()] == ["common"]
        assert [one["content"] for one in await house.entries(house.scope(user="bob"))] == ["Bob's"]

    async def test_more_than_a_page_comes_whole_and_in_order(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transfer, "_PAGE", 3)
        await house.take(*(entry(f"{number:012x}", f"fact {number}") for number in range(7)))
        assert [one["id"] for one in await house.entries()] == [f"{number:012x}" for number in range(7)]

    async def test_a_slow_reader_holds_no_transaction_open(self, house: House) -> None:
        await house.take(FULL, ARCHIVED)
        lines = transfer.export(house.resources, house.scope())
        await anext(lines)
        # Beginning a generation waits for every open transaction of a tenant.
        async with asyncio.timeout(5), house.resources.postgres.across_tenants(exclusive=True):
            pass
        assert [one async for one in lines] != []

    async def test_an_empty_scope_is_an_empty_export(self, house: House) -> None:
        assert await house.lines() == []


class TestById:
    async def test_an_import_repeated_changes_nothing(self, house: House) -> None:
        await house.take(FULL, ARCHIVED)
        before, numbers = await house.lines(), await versions(house)
        report = await house.take(FULL, ARCHIVED)
        assert (report["created"], report["updated"], report["skipped"]) == (0, 0, 2)
        assert await house.lines() == before
        assert await versions(house) == numbers
        assert await histories(house, ADA) == ["imported"]

    async def test_what_differs_is_updated_and_never_reinforced(self, house: House) -> None:
        await house.take(FULL)
        report = await house.take(FULL | {"importance": 0.9, "reinforcement_count": 2})
        assert (report["created"], report["updated"], report["skipped"]) == (0, 1, 0)
        assert await house.entries() == [FULL | {"importance": 0.9, "reinforcement_count": 2}]
        assert await versions(house) == {ADA: (1, 1)}
        assert await histories(house, ADA) == ["imported", "updated"]

    async def test_what_a_line_does_not_name_stays(self, house: House) -> None:
        await house.take(FULL)
        report = await house.take({"id": ADA, "content": FULL["content"], "category": None})
        (now,) = await house.entries()
        assert report["updated"] == 1
        assert now["updated_at"] > LATER
        assert now == FULL | {"category": None, "updated_at": now["updated_at"]}

    @pytest.mark.parametrize(
        ("changed", "numbers"),
        [
            ({"content": "Ada flies now."}, (2, 2)),
            ({"category": "general"}, (2, 2)),
            ({"tags": ["x"]}, (2, 1)),
            ({"metadata": {"a": "b"}}, (2, 1)),
            ({"occurred_at": LATER}, (2, 1)),
            ({"created_at": LATER}, (2, 1)),
            ({"state": "archived", "archived_at": LATER}, (2, 1)),
            ({"last_seen_at": THEN}, (1, 1)),
            ({"sources": []}, (1, 1)),
        ],
    )
    async def test_only_what_searches_see_makes_a_new_version(
        self, house: House, changed: dict[str, Any], numbers: tuple[int, int]
    ) -> None:
        await house.take(FULL)
        await house.take(FULL | changed)
        assert await versions(house) == {ADA: numbers}
        assert await house.entries() == [FULL | changed]

    async def test_an_id_told_twice_ends_as_the_last_line_says(self, house: House) -> None:
        report = await house.take(entry(ADA, "first"), entry(ADA.upper(), "last"))
        assert (report["created"], report["updated"]) == (1, 1)
        assert [one["content"] for one in await house.entries()] == ["last"]


class TestSearchability:
    async def test_an_import_is_found_when_it_answers(self, house: House) -> None:
        await house.take(FULL, entry("0000000000cc", "Bob likes boats."))
        assert await found(house, "trains") == [ADA]
        assert await found(house, "boats") == ["0000000000cc"]

    async def test_an_update_is_found_by_its_new_words_only(self, house: House) -> None:
        await house.take(entry(ADA, "Ada likes trains."))
        await house.take(entry(ADA, "Ada likes boats."))
        assert await found(house, "boats") == [ADA]
        assert await found(house, "trains") == []

    async def test_what_an_import_archives_is_found_no_more(self, house: House) -> None:
        await house.take(entry(ADA, "Ada likes trains."))
        await house.take(entry(ADA, "Ada likes trains.", state="archived", archived_at=LATER))
        assert await found(house, "trains") == []

    async def test_with_the_index_away_it_is_stored_and_left_to_a_worker(
        self, settings: config.Settings
    ) -> None:
        away = settings.model_copy(update={"qdrant_url": "http://127.0.0.1:9"})
        async with open_resources(away) as opened, new_house(opened) as house:
            assert (await house.take(FULL))["created"] == 1
            async with opened.postgres.for_tenant(house.tenant) as connection:
                due = await connection.execute(text("SELECT record_id FROM job WHERE stage = 'index'"))
                assert [row.record_id for row in due] == [ADA]


class TestMalformed:
    async def test_it_is_named_by_line_and_rule_and_the_rest_is_imported(self, house: House) -> None:
        report = await house.take(
            b"\xef\xbb\xbf" + orjson.dumps(entry(ADA, "one")) + b"\r\n",
            b"\n{broken\n[]\n",
            entry(BOB, " "),
            entry("0000000000cc", "x", category="../x"),
            entry("0000000000dd", "last"),
        )
        assert report["created"] == 2
        assert [one["line"] for one in report["malformed"]] == [3, 4, 5, 6]
        rules = [one["rule"].partition(":")[0] for one in report["malformed"]]
        assert rules == ["line", "line", "content", "category"]

    async def test_lines_may_be_cut_anywhere(self, house: House) -> None:
        whole = line_of(FULL) + line_of(ARCHIVED).rstrip(b"\n")
        report = await house.take(*(whole[i : i + 7] for i in range(0, len(whole), 7)))
        assert report["created"] == 2
        assert await house.entries() == [FULL, ARCHIVED]


class TestLimits:
    async def test_over_a_limit_nothing_is_stored(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(upload, "MAX_BYTES", 1000)
        with pytest.raises(errors.TooLarge, match="1000 bytes"):
            await house.take(entry(ADA, "one"), entry(BOB, "x" * 1000))
        assert await house.entries() == []

    async def test_the_greatest_entry_there_can_be_fits_a_line(self, house: House) -> None:
        pairs = {f"{number:02}" + "\U0001f600" * 62: "\U0001f600" * 1024 for number in range(64)}
        greatest = entry(ADA, "\x01" * 15_999 + "x", metadata=pairs)
        assert (await house.take(greatest))["created"] == 1
        exported = await house.lines()
        assert len(exported[0]) < ndjson.MAX_BYTES
        async with new_house(house.resources) as other:
            assert (await other.take(*exported, scope=other.scope()))["created"] == 1


class TestRaces:
    async def test_two_imports_at_once_store_everything_once(self, house: House) -> None:
        lines = [entry(f"{number:012x}", f"fact {number}") for number in range(300)]
        reports = await asyncio.gather(*(house.take(*lines) for _ in range(4)))
        assert sum(one["created"] for one in reports) == 300
        assert sum(one["skipped"] for one in reports) == 900
        assert len(await house.entries()) == 300

    async def test_saves_meanwhile_neither_break_it_nor_are_doubled(self, house: House) -> None:
        lines = [entry(f"{number:012x}", f"fact {number}") for number in range(200)]
        saves = (saved(house, f"fact {number}") for number in range(0, 200, 5))
        report, *_ = await asyncio.gather(house.take(*lines), *saves)
        contents = [one["content"] for one in await house.entries()]
        assert len(contents) == len(set(contents)) == 200
        assert report["created"] + len(report["duplicates"]) == 200


class TestReach:
    async def test_history_tells_who_imported(self, house: House) -> None:
        await house.take(FULL)
        await update.update(house.resources, house.caller, ADA, {"importance": 0.7})
        async with house.resources.postgres.for_tenant(house.tenant) as connection:
            notes = await history.list_for_memory(connection, house.tenant, ADA)
        assert [(note["actor"], note["action"]) for note in notes] == [
            ("importer", "imported"),
            ("importer", "updated"),
        ]
