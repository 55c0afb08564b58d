"""Export and import of one scope: no memory is lost, duplicated or reinforced."""

import asyncio
from typing import Any

import orjson
import pytest
from sqlalchemy import text

from shared.foundation import config, errors
from shared.lifecycle.transfer import memory_lines, ndjson, upload
from shared.memory.longterm import history_queries, update
from shared.platform.resources import open_resources
from tests.integration.transfer.conftest import TenantStack, new_stack
from tests.integration.transfer.import_reports import (
    ADA,
    ARCHIVED,
    BOB,
    EARLIER,
    FULL,
    LATER,
    encode_line,
    list_actions,
    minimal_line,
    read_versions,
    save_memory,
    search_memory_ids,
)


class TestExport:
    async def test_every_field_is_exported_as_it_was_imported(self, stack: TenantStack) -> None:
        report = await stack.import_lines(FULL, ARCHIVED)
        assert report["created"] == 2
        assert await stack.export_memories() == [FULL, ARCHIVED]

    async def test_an_export_contains_exactly_the_requested_scope(self, stack: TenantStack) -> None:
        await stack.import_lines(minimal_line(ADA, "common"))
        await stack.import_lines(minimal_line(BOB, "Bob's"), scope=stack.scope(user="bob"))
        await stack.import_lines(minimal_line("0000000000cc", "another agent's"), scope=stack.scope("b"))
        assert [memory["content"] for memory in await stack.export_memories()] == ["common"]
        assert [memory["content"] for memory in await stack.export_memories(stack.scope(user="bob"))] == [
            "Bob's"
        ]

    async def test_an_export_of_several_pages_is_complete_and_in_order(
        self, stack: TenantStack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(memory_lines, "_PAGE", 3)
        await stack.import_lines(*(minimal_line(f"{number:012x}", f"fact {number}") for number in range(7)))
        assert [memory["id"] for memory in await stack.export_memories()] == [
            f"{number:012x}" for number in range(7)
        ]

    async def test_a_slow_reader_does_not_keep_a_transaction_open(self, stack: TenantStack) -> None:
        await stack.import_lines(FULL, ARCHIVED)
        lines = memory_lines.export(stack.resources, stack.scope())
        await anext(lines)
        # An exclusive transaction waits for every open transaction of a tenant.
        async with asyncio.timeout(5), stack.resources.postgres.across_tenants(exclusive=True):
            pass
        assert [line async for line in lines] != []

    async def test_an_empty_scope_is_an_empty_export(self, stack: TenantStack) -> None:
        assert await stack.export_lines() == []


class TestById:
    async def test_a_repeated_import_changes_nothing(self, stack: TenantStack) -> None:
        await stack.import_lines(FULL, ARCHIVED)
        lines_before, versions_before = await stack.export_lines(), await read_versions(stack)
        report = await stack.import_lines(FULL, ARCHIVED)
        assert (report["created"], report["updated"], report["skipped"]) == (0, 0, 2)
        assert await stack.export_lines() == lines_before
        assert await read_versions(stack) == versions_before
        assert await list_actions(stack, ADA) == ["imported"]

    async def test_a_different_line_updates_the_memory_and_never_reinforces_it(
        self, stack: TenantStack
    ) -> None:
        await stack.import_lines(FULL)
        report = await stack.import_lines(FULL | {"importance": 0.9, "reinforcement_count": 2})
        assert (report["created"], report["updated"], report["skipped"]) == (0, 1, 0)
        assert await stack.export_memories() == [FULL | {"importance": 0.9, "reinforcement_count": 2}]
        assert await list_actions(stack, ADA) == ["imported", "updated"]

    async def test_fields_that_a_line_does_not_have_are_kept(self, stack: TenantStack) -> None:
        await stack.import_lines(FULL)
        report = await stack.import_lines({"id": ADA, "content": FULL["content"], "category": None})
        (memory,) = await stack.export_memories()
        assert report["updated"] == 1
        assert memory["updated_at"] > LATER
        assert memory == FULL | {"category": None, "updated_at": memory["updated_at"]}

    @pytest.mark.parametrize(
        ("changed_fields", "new_versions"),
        [
            ({"content": "Ada flies now."}, (1, 1)),
            ({"category": "general"}, (1, 1)),
            ({"tags": ["x"]}, (1, 0)),
            ({"metadata": {"a": "b"}}, (1, 0)),
            ({"occurred_at": LATER}, (1, 0)),
            ({"created_at": LATER}, (1, 0)),
            ({"state": "archived", "archived_at": LATER}, (1, 0)),
            ({"last_seen_at": EARLIER}, (1, 0)),
            ({"sources": []}, (1, 0)),
        ],
    )
    async def test_each_change_makes_a_new_version_and_one_of_the_text_also_one_of_its_content(
        self, stack: TenantStack, changed_fields: dict[str, Any], new_versions: tuple[int, int]
    ) -> None:
        await stack.import_lines(FULL)
        version, content_version = (await read_versions(stack))[ADA]
        await stack.import_lines(FULL | changed_fields)
        expected = (version + new_versions[0], content_version + new_versions[1])
        assert await read_versions(stack) == {ADA: expected}
        assert await stack.export_memories() == [FULL | changed_fields]

    async def test_the_last_of_two_lines_with_the_same_id_wins(self, stack: TenantStack) -> None:
        report = await stack.import_lines(minimal_line(ADA, "first"), minimal_line(ADA.upper(), "last"))
        assert (report["created"], report["updated"]) == (1, 1)
        assert [memory["content"] for memory in await stack.export_memories()] == ["last"]


class TestSearchability:
    async def test_imported_memories_are_found_when_the_import_returns(self, stack: TenantStack) -> None:
        await stack.import_lines(FULL, minimal_line("0000000000cc", "Bob likes boats."))
        assert await search_memory_ids(stack, "trains") == [ADA]
        assert await search_memory_ids(stack, "boats") == ["0000000000cc"]

    async def test_an_updated_memory_is_found_by_its_new_words_only(self, stack: TenantStack) -> None:
        await stack.import_lines(minimal_line(ADA, "Ada likes trains."))
        await stack.import_lines(minimal_line(ADA, "Ada likes boats."))
        assert await search_memory_ids(stack, "boats") == [ADA]
        assert await search_memory_ids(stack, "trains") == []

    async def test_a_memory_that_an_import_archives_is_no_longer_found(self, stack: TenantStack) -> None:
        await stack.import_lines(minimal_line(ADA, "Ada likes trains."))
        await stack.import_lines(minimal_line(ADA, "Ada likes trains.", state="archived", archived_at=LATER))
        assert await search_memory_ids(stack, "trains") == []

    async def test_without_the_index_memories_are_stored_and_their_index_jobs_stay_due(
        self, settings: config.Settings
    ) -> None:
        settings_without_index = settings.model_copy(update={"qdrant_url": "http://127.0.0.1:9"})
        async with open_resources(settings_without_index) as resources, new_stack(resources) as stack:
            assert (await stack.import_lines(FULL))["created"] == 1
            async with resources.postgres.for_tenant(stack.tenant) as tx:
                jobs = await tx.execute(text("SELECT record_id FROM job WHERE stage = 'index'"))
                assert [job.record_id for job in jobs] == [ADA]


class TestMalformed:
    async def test_malformed_lines_are_reported_by_number_and_rule_and_the_others_are_imported(
        self, stack: TenantStack
    ) -> None:
        report = await stack.import_lines(
            b"\xef\xbb\xbf" + orjson.dumps(minimal_line(ADA, "one")) + b"\r\n",
            b"\n{broken\n[]\n",
            minimal_line(BOB, " "),
            minimal_line("0000000000cc", "x", category="../x"),
            minimal_line("0000000000dd", "last"),
        )
        assert report["created"] == 2
        assert [problem["line"] for problem in report["malformed"]] == [3, 4, 5, 6]
        rules = [problem["rule"].partition(":")[0] for problem in report["malformed"]]
        assert rules == ["line", "line", "content", "category"]

    async def test_upload_chunks_may_begin_anywhere_in_a_line(self, stack: TenantStack) -> None:
        upload_bytes = encode_line(FULL) + encode_line(ARCHIVED).rstrip(b"\n")
        report = await stack.import_lines(*(upload_bytes[i : i + 7] for i in range(0, len(upload_bytes), 7)))
        assert report["created"] == 2
        assert await stack.export_memories() == [FULL, ARCHIVED]


class TestLimits:
    async def test_an_import_over_a_limit_stores_nothing(
        self, stack: TenantStack, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(upload, "MAX_BYTES", 1000)
        with pytest.raises(errors.TooLarge, match="1000 bytes"):
            await stack.import_lines(minimal_line(ADA, "one"), minimal_line(BOB, "x" * 1000))
        assert await stack.export_memories() == []

    async def test_the_largest_possible_memory_fits_into_a_line(self, stack: TenantStack) -> None:
        pairs = {f"{number:02}" + "\U0001f600" * 62: "\U0001f600" * 1024 for number in range(64)}
        largest = minimal_line(ADA, "\x01" * 15_999 + "x", metadata=pairs)
        assert (await stack.import_lines(largest))["created"] == 1
        exported_lines = await stack.export_lines()
        assert len(exported_lines[0]) < ndjson.MAX_BYTES
        async with new_stack(stack.resources) as other_stack:
            assert (await other_stack.import_lines(*exported_lines, scope=other_stack.scope()))[
                "created"
            ] == 1


class TestRaces:
    async def test_concurrent_imports_store_every_memory_once(self, stack: TenantStack) -> None:
        lines = [minimal_line(f"{number:012x}", f"fact {number}") for number in range(300)]
        reports = await asyncio.gather(*(stack.import_lines(*lines) for _ in range(4)))
        assert sum(report["created"] for report in reports) == 300
        assert sum(report["skipped"] for report in reports) == 900
        assert len(await stack.export_memories()) == 300

    async def test_concurrent_saves_neither_fail_the_import_nor_are_duplicated(
        self, stack: TenantStack
    ) -> None:
        lines = [minimal_line(f"{number:012x}", f"fact {number}") for number in range(200)]
        saves = (save_memory(stack, f"fact {number}") for number in range(0, 200, 5))
        report, *_ = await asyncio.gather(stack.import_lines(*lines), *saves)
        contents = [memory["content"] for memory in await stack.export_memories()]
        assert len(contents) == len(set(contents)) == 200
        assert report["created"] + len(report["duplicates"]) == 200


class TestHistory:
    async def test_the_history_names_the_actor_of_an_import(self, stack: TenantStack) -> None:
        await stack.import_lines(FULL)
        await update.update(stack.resources, stack.caller, ADA, {"importance": 0.7})
        async with stack.resources.postgres.for_tenant(stack.tenant) as tx:
            changes = await history_queries.list_for_memory(tx, ADA)
        assert [(change["actor"], change["action"]) for change in changes] == [
            ("importer", "imported"),
            ("importer", "updated"),
        ]
