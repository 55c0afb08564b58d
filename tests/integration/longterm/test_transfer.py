"""Taking a scope's memory out and in: nothing is lost, doubled, reinforced or brought back."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sqlalchemy import text

from shared import config, errors
from shared.longterm import change, forget, history, intake, line, save, search, transfer
from shared.longterm.criteria import Criteria
from shared.longterm.record import Draft
from shared.longterm.search import Ranking
from shared.resources import open_resources
from shared.scope import Scope
from tests.integration.longterm.conftest import House, new_house

ADA = "00000000ada0"
BOB = "00000000b0b0"
THEN = "2024-05-06T07:08:09.123456Z"
LATER = "2025-05-06T07:08:09.654321Z"
FULL: dict[str, Any] = {
    "id": ADA,
    "content": "Ada prefers trains to planes.",
    "category": "user-preferences/travel",
    "tags": ["travel", "zug"],
    "metadata": {"k": "v", "subjectTime": "2024"},
    "importance": 0.1,
    "state": "failed",
    "failure": "the model refused",
    "occurred_at": THEN,
    "sources": [{"session_id": "s/1", "seq": 7, "speaker": "Ada", "role": "user"}],
    "created_at": THEN,
    "updated_at": LATER,
    "last_seen_at": LATER,
    "reinforcement_count": 5,
    "agent_id": "a",
    "user_id": None,
    "superseded_by": [],
    "derived_from": [BOB],
    "archived_at": None,
    "archive_reason": None,
}
ARCHIVED = FULL | {
    "id": BOB,
    "state": "archived",
    "failure": None,
    "superseded_by": [ADA],
    "derived_from": [],
    "archived_at": LATER,
    "archive_reason": "enriched",
}


def entry(entry_id: str, content: str, **fields: Any) -> dict[str, Any]:
    """Return a line with the least that one must say."""
    return {"id": entry_id, "content": content} | fields


async def found(house: House, query: str, scope: Scope | None = None) -> list[str]:
    """Return the ids that a search of the index finds."""
    results = await search.search(
        house.resources, scope or house.scope(), query, Criteria(), Ranking(strategy="bm25")
    )
    assert results.degraded == []
    return [one.entry.id for one in results.results]


async def histories(house: House, entry_id: str) -> list[str]:
    """Return what happened to an entry."""
    async with house.resources.postgres.tenant(house.tenant) as connection:
        return [note["action"] for note in await history.of_entry(connection, house.tenant, entry_id)]


async def versions(house: House) -> dict[str, tuple[int, int]]:
    """Return (version, content version) of every entry."""
    async with house.resources.postgres.tenant(house.tenant) as connection:
        rows = await connection.execute(text("SELECT id, version, content_version FROM entry"))
        return {row.id: (row.version, row.content_version) for row in rows}


async def enrichment(house: House) -> set[str]:
    """Return the entries that wait for enrichment."""
    async with house.resources.postgres.tenant(house.tenant) as connection:
        rows = await connection.execute(text("SELECT ref FROM work WHERE track = 'enrichment'"))
        return {row.ref for row in rows}


async def saved(house: House, content: str, scope: Scope | None = None) -> dict[str, Any]:
    """Save as an agent does."""
    return await save.save(house.resources, scope or house.scope(), "agent", Draft(content=content).checked())


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
        async with asyncio.timeout(5), house.resources.postgres.fleet(exclusive=True):
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
        first, second = (next(x for x in await house.entries() if x["id"] == new[y["id"]]) for y in lines)
        assert first["superseded_by"] == [second["id"]]
        assert len(second["id"]) == 12
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
        await forget.forget(house.resources, house.caller, ADA)
        report = await house.take(*exported)
        assert (report["created"], report["tombstoned"]) == (0, [ADA])
        assert await house.entries() == []

    async def test_an_update_does_not_bring_a_deleted_text_back_either(self, house: House) -> None:
        await house.take(entry(ADA, "secret"), entry(BOB, "plain"))
        await forget.forget(house.resources, house.caller, ADA)
        report = await house.take(entry(BOB, "Secret"))
        assert report["tombstoned"] == [BOB]
        assert [one["content"] for one in await house.entries()] == ["plain"]

    async def test_restoring_brings_it_back_and_lifts_the_tombstone(self, house: House) -> None:
        await house.take(FULL)
        exported = await house.lines()
        await forget.forget(house.resources, house.caller, ADA)
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


def line_of(one: dict[str, Any]) -> bytes:
    """Return an entry as a line."""
    return orjson.dumps(one) + b"\n"


class TestLimits:
    async def test_over_a_limit_nothing_is_stored(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(intake, "MAX_BYTES", 1000)
        with pytest.raises(errors.TooLarge, match="1000 bytes"):
            await house.take(entry(ADA, "one"), entry(BOB, "x" * 1000))
        assert await house.entries() == []

    async def test_the_greatest_entry_there_can_be_fits_a_line(self, house: House) -> None:
        pairs = {f"{number:02}" + "\U0001f600" * 62: "\U0001f600" * 1024 for number in range(64)}
        greatest = entry(ADA, "\x01" * 15_999 + "x", metadata=pairs)
        assert (await house.take(greatest))["created"] == 1
        exported = await house.lines()
        assert len(exported[0]) < line.MAX_BYTES
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
        await change.update(house.resources, house.caller, ADA, {"importance": 0.7})
        async with house.resources.postgres.tenant(house.tenant) as connection:
            notes = await history.of_entry(connection, house.tenant, ADA)
        assert [(note["actor"], note["action"]) for note in notes] == [
            ("importer", "imported"),
            ("importer", "updated"),
        ]


_IDS = some.integers(0, 16**12 - 1).map(lambda number: f"{number:012x}")
_TEXT = some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)
_WORDS = _TEXT.filter(lambda words: words.strip() != "")
_TAG = some.text(
    some.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=64
).filter(lambda tag: tag.strip() != "")
_MOMENT = some.datetimes(timezones=some.just(UTC))
_SOURCE = some.fixed_dictionaries(
    {"session_id": some.from_regex(r"[a-z0-9_-]{1,9}(/[a-z]{1,9})?", fullmatch=True)},
    optional={
        "seq": some.integers(0, 2**31 - 1),
        "speaker": _WORDS.map(lambda name: name[:99] + "."),
        "role": some.just("user"),
    },
)
_ARCHIVED = some.fixed_dictionaries(
    {"state": some.just("archived"), "archived_at": _MOMENT, "archive_reason": some.none() | _TEXT}
)
_LIVE = some.fixed_dictionaries(
    {"state": some.sampled_from(["final", "kept-raw"])}
) | some.fixed_dictionaries({"state": some.just("failed"), "failure": _TEXT})
_REST = some.fixed_dictionaries(
    {"id": _IDS, "content": _WORDS},
    optional={
        "category": some.none()
        | some.from_regex(r"[A-Za-z0-9_-]{1,9}(/[A-Za-z0-9_-]{1,9}){0,3}", fullmatch=True),
        "tags": some.lists(_TAG, max_size=4, unique=True),
        "metadata": some.dictionaries(
            _TAG, some.text(_TEXT.map(lambda told: told[0]), max_size=9), max_size=4
        ),
        "importance": some.floats(0, 1),
        "occurred_at": some.none() | _MOMENT,
        "sources": some.lists(_SOURCE, max_size=3),
        "created_at": _MOMENT,
        "updated_at": some.none() | _MOMENT,
        "last_seen_at": _MOMENT,
        "reinforcement_count": some.integers(1, 2**31 - 1),
        "superseded_by": some.lists(_IDS, max_size=3),
        "derived_from": some.lists(_IDS, max_size=3),
    },
)
_ENTRY = some.builds(lambda rest, state: rest | state, _REST, _LIVE | _ARCHIVED)


@given(entries=some.lists(_ENTRY, max_size=6, unique_by=lambda one: one["id"]))
@settings(max_examples=60, deadline=None)
def test_out_and_into_an_empty_tenant_and_out_again_gives_the_same_lines(
    settings: config.Settings, entries: list[dict[str, Any]]
) -> None:
    asyncio.run(_round_trip(settings, entries))


async def _round_trip(settings: config.Settings, entries: list[dict[str, Any]]) -> None:
    async with (
        open_resources(settings) as resources,
        new_house(resources) as one,
        new_house(resources) as two,
    ):
        first = await one.take(*entries)
        assert first["malformed"] == []
        exported = await one.lines()
        assert len(exported) == first["created"] == len(entries) - len(first["duplicates"])
        second = await two.take(*exported)
        assert second["created"] == len(exported)
        assert await two.lines() == exported
        again = await two.take(*exported)
        assert again["skipped"] == len(exported)
        assert await two.lines() == exported
        _as_told(entries, exported)


def _as_told(entries: list[dict[str, Any]], exported: list[bytes]) -> None:
    told = {one["id"]: orjson.loads(orjson.dumps(one)) for one in entries}
    for raw in exported:
        shown = orjson.loads(raw)
        for name, value in told[shown["id"]].items():
            assert _plain(shown[name]) == _plain(value), name


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [{"seq": None, "speaker": None, "role": None} | x if isinstance(x, dict) else x for x in value]
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
