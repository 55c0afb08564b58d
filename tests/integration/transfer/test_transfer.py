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
from tests.integration.transfer.conftest import TenantStack, new_stack
from tests.integration.transfer.import_reports import (
    ADA,
    ARCHIVED,
    BOB,
    FULL,
    LATER,
    THEN,
    line_of,
    list_actions,
    minimal_line,
    save_memory,
    search_ids,
    versions,
)


class TestExport:
    async def test_every_field_goes_out_as_it_came_in(self, stack: TenantStack) -> None:
        report = await stack.import_entries(FULL, ARCHIVED)
        assert report["created"] == 2
        assert await stack.entries() == [FULL, ARCHIVED]

    async def test_it_holds_exactly_the_scope_that_is_named(self, stack: TenantStack) -> None:
        await stack.import_entries(minimal_line(ADA, "common"))
        await stack.import_entries(minimal_line(BOB, "Bob's"), scope=stack.scope(user="bob"))
        await stack.import_entries(minimal_line("0000000000cc", "another agent's"), scope=stack.scope("b"))
        assert [item["content"] for item in await stack.entries()] == ["common"]
        assert [item["content"] for item in await stack.entries(stack.scope(user="bob"))] == ["Bob's"]

    async def test_more_than_a_page_comes_whole_and_in_order(
        self, stack: TenantStack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transfer, "_PAGE", 3)
        await stack.import_entries(*(minimal_line(f"{number:012x}", f"fact {number}") for number in range(7)))
        assert [item["id"] for item in await stack.entries()] == [f"{number:012x}" for number in range(7)]

    async def test_a_slow_reader_holds_no_transaction_open(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL, ARCHIVED)
        lines = transfer.export(stack.resources, stack.scope())
        await anext(lines)
        # Beginning a generation waits for every open transaction of a tenant.
        async with asyncio.timeout(5), stack.resources.postgres.across_tenants(exclusive=True):
            pass
        assert [item async for item in lines] != []

    async def test_an_empty_scope_is_an_empty_export(self, stack: TenantStack) -> None:
        assert await stack.lines() == []


class TestById:
    async def test_an_import_repeated_changes_nothing(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL, ARCHIVED)
        before, numbers = await stack.lines(), await versions(stack)
        report = await stack.import_entries(FULL, ARCHIVED)
        assert (report["created"], report["updated"], report["skipped"]) == (0, 0, 2)
        assert await stack.lines() == before
        assert await versions(stack) == numbers
        assert await list_actions(stack, ADA) == ["imported"]

    async def test_what_differs_is_updated_and_never_reinforced(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL)
        report = await stack.import_entries(FULL | {"importance": 0.9, "reinforcement_count": 2})
        assert (report["created"], report["updated"], report["skipped"]) == (0, 1, 0)
        assert await stack.entries() == [FULL | {"importance": 0.9, "reinforcement_count": 2}]
        assert await versions(stack) == {ADA: (1, 1)}
        assert await list_actions(stack, ADA) == ["imported", "updated"]

    async def test_what_a_line_does_not_name_stays(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL)
        report = await stack.import_entries({"id": ADA, "content": FULL["content"], "category": None})
        (now,) = await stack.entries()
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
        self, stack: TenantStack, changed: dict[str, Any], numbers: tuple[int, int]
    ) -> None:
        await stack.import_entries(FULL)
        await stack.import_entries(FULL | changed)
        assert await versions(stack) == {ADA: numbers}
        assert await stack.entries() == [FULL | changed]

    async def test_an_id_on_two_lines_ends_as_the_last_line_says(self, stack: TenantStack) -> None:
        report = await stack.import_entries(minimal_line(ADA, "first"), minimal_line(ADA.upper(), "last"))
        assert (report["created"], report["updated"]) == (1, 1)
        assert [item["content"] for item in await stack.entries()] == ["last"]


class TestSearchability:
    async def test_an_import_is_found_when_it_answers(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL, minimal_line("0000000000cc", "Bob likes boats."))
        assert await search_ids(stack, "trains") == [ADA]
        assert await search_ids(stack, "boats") == ["0000000000cc"]

    async def test_an_update_is_found_by_its_new_words_only(self, stack: TenantStack) -> None:
        await stack.import_entries(minimal_line(ADA, "Ada likes trains."))
        await stack.import_entries(minimal_line(ADA, "Ada likes boats."))
        assert await search_ids(stack, "boats") == [ADA]
        assert await search_ids(stack, "trains") == []

    async def test_what_an_import_archives_is_found_no_more(self, stack: TenantStack) -> None:
        await stack.import_entries(minimal_line(ADA, "Ada likes trains."))
        await stack.import_entries(
            minimal_line(ADA, "Ada likes trains.", state="archived", archived_at=LATER)
        )
        assert await search_ids(stack, "trains") == []

    async def test_with_the_index_away_it_is_stored_and_left_to_a_worker(
        self, settings: config.Settings
    ) -> None:
        away = settings.model_copy(update={"qdrant_url": "http://127.0.0.1:9"})
        async with open_resources(away) as resources, new_stack(resources) as stack:
            assert (await stack.import_entries(FULL))["created"] == 1
            async with resources.postgres.for_tenant(stack.tenant) as connection:
                due = await connection.execute(text("SELECT record_id FROM job WHERE stage = 'index'"))
                assert [row.record_id for row in due] == [ADA]


class TestMalformed:
    async def test_it_is_named_by_line_and_rule_and_the_rest_is_imported(self, stack: TenantStack) -> None:
        report = await stack.import_entries(
            b"\xef\xbb\xbf" + orjson.dumps(minimal_line(ADA, "one")) + b"\r\n",
            b"\n{broken\n[]\n",
            minimal_line(BOB, " "),
            minimal_line("0000000000cc", "x", category="../x"),
            minimal_line("0000000000dd", "last"),
        )
        assert report["created"] == 2
        assert [item["line"] for item in report["malformed"]] == [3, 4, 5, 6]
        rules = [item["rule"].partition(":")[0] for item in report["malformed"]]
        assert rules == ["line", "line", "content", "category"]

    async def test_lines_may_be_cut_anywhere(self, stack: TenantStack) -> None:
        whole = line_of(FULL) + line_of(ARCHIVED).rstrip(b"\n")
        report = await stack.import_entries(*(whole[i : i + 7] for i in range(0, len(whole), 7)))
        assert report["created"] == 2
        assert await stack.entries() == [FULL, ARCHIVED]


class TestLimits:
    async def test_over_a_limit_nothing_is_stored(
        self, stack: TenantStack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(upload, "MAX_BYTES", 1000)
        with pytest.raises(errors.TooLarge, match="1000 bytes"):
            await stack.import_entries(minimal_line(ADA, "one"), minimal_line(BOB, "x" * 1000))
        assert await stack.entries() == []

    async def test_the_greatest_entry_there_can_be_fits_a_line(self, stack: TenantStack) -> None:
        pairs = {f"{number:02}" + "\U0001f600" * 62: "\U0001f600" * 1024 for number in range(64)}
        greatest = minimal_line(ADA, "\x01" * 15_999 + "x", metadata=pairs)
        assert (await stack.import_entries(greatest))["created"] == 1
        exported = await stack.lines()
        assert len(exported[0]) < ndjson.MAX_BYTES
        async with new_stack(stack.resources) as other:
            assert (await other.import_entries(*exported, scope=other.scope()))["created"] == 1


class TestRaces:
    async def test_two_imports_at_once_store_everything_once(self, stack: TenantStack) -> None:
        lines = [minimal_line(f"{number:012x}", f"fact {number}") for number in range(300)]
        reports = await asyncio.gather(*(stack.import_entries(*lines) for _ in range(4)))
        assert sum(item["created"] for item in reports) == 300
        assert sum(item["skipped"] for item in reports) == 900
        assert len(await stack.entries()) == 300

    async def test_saves_meanwhile_neither_break_it_nor_are_doubled(self, stack: TenantStack) -> None:
        lines = [minimal_line(f"{number:012x}", f"fact {number}") for number in range(200)]
        saves = (save_memory(stack, f"fact {number}") for number in range(0, 200, 5))
        report, *_ = await asyncio.gather(stack.import_entries(*lines), *saves)
        contents = [item["content"] for item in await stack.entries()]
        assert len(contents) == len(set(contents)) == 200
        assert report["created"] + len(report["duplicates"]) == 200


class TestReach:
    async def test_history_tells_who_imported(self, stack: TenantStack) -> None:
        await stack.import_entries(FULL)
        await update.update(stack.resources, stack.caller, ADA, {"importance": 0.7})
        async with stack.resources.postgres.for_tenant(stack.tenant) as connection:
            notes = await history.list_for_memory(connection, stack.tenant, ADA)
        assert [(note["actor"], note["action"]) for note in notes] == [
            ("importer", "imported"),
            ("importer", "updated"),
        ]
