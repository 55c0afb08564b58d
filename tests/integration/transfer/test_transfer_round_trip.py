"""Any memories can be exported, imported into another tenant and exported again unchanged."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from shared.foundation import config, validation
from shared.platform.resources import Resources, open_resources
from tests.integration.transfer.conftest import new_stack

_IDS = st.integers(0, 16**12 - 1).map(lambda number: f"{number:012x}")
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)
_NOT_BLANK = _TEXT.filter(lambda text: not validation.is_blank(text))
_TAG = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=64).filter(
    lambda tag: not validation.is_blank(tag)
)
_TIME = st.datetimes(timezones=st.just(UTC)).filter(lambda time: 2 <= time.year <= 9998)
_SOURCE = st.fixed_dictionaries(
    {"session_id": st.from_regex(r"[a-z0-9_-]{1,9}(/[a-z]{1,9})?", fullmatch=True)},
    optional={
        "seq": st.integers(0, 2**31 - 1),
        "speaker": _NOT_BLANK.map(lambda name: name[:99] + "."),
        "role": st.just("user"),
    },
)
_ARCHIVED = st.fixed_dictionaries(
    {"state": st.just("archived"), "archived_at": _TIME, "archive_reason": st.none() | _TEXT}
)
_LIVE = st.fixed_dictionaries({"state": st.sampled_from(["final", "kept-raw"])}) | st.fixed_dictionaries(
    {"state": st.just("failed"), "failure_reason": _TEXT}
)
_FIELDS_OF_EVERY_STATE = st.fixed_dictionaries(
    {"id": _IDS, "content": _NOT_BLANK},
    optional={
        "category": st.none()
        | st.from_regex(r"[A-Za-z0-9_-]{1,9}(/[A-Za-z0-9_-]{1,9}){0,3}", fullmatch=True),
        "tags": st.lists(_TAG, max_size=4, unique=True),
        "metadata": st.dictionaries(_TAG, st.text(_TEXT.map(lambda text: text[0]), max_size=9), max_size=4),
        "importance": st.floats(0, 1),
        "occurred_at": st.none() | _TIME,
        "sources": st.lists(_SOURCE, max_size=3),
        "created_at": _TIME,
        "updated_at": st.none() | _TIME,
        "last_seen_at": _TIME,
        "reinforcement_count": st.integers(1, 2**31 - 1),
        "superseded_by": st.lists(_IDS, max_size=3),
        "derived_from": st.lists(_IDS, max_size=3),
    },
)
_MEMORY = st.builds(
    lambda fields, state_fields: fields | state_fields, _FIELDS_OF_EVERY_STATE, _LIVE | _ARCHIVED
)


def test_an_export_imported_into_an_empty_tenant_is_exported_unchanged(settings: config.Settings) -> None:
    with asyncio.Runner() as runner:
        clients = AsyncExitStack()
        resources = runner.run(clients.enter_async_context(open_resources(settings)))

        @given(memories=st.lists(_MEMORY, max_size=6, unique_by=lambda memory: memory["id"]))
        @hypothesis_settings(max_examples=40)
        def stays_unchanged(memories: list[dict[str, Any]]) -> None:
            runner.run(_round_trip(resources, memories))

        try:
            stays_unchanged()
        finally:
            runner.run(clients.aclose())


async def _round_trip(resources: Resources, memories: list[dict[str, Any]]) -> None:
    async with new_stack(resources) as source, new_stack(resources) as target:
        first_report = await source.import_lines(*memories)
        assert first_report["malformed"] == []
        exported_lines = await source.export_lines()
        assert (
            len(exported_lines) == first_report["created"] == len(memories) - len(first_report["duplicates"])
        )
        second_report = await target.import_lines(*exported_lines)
        assert second_report["created"] == len(exported_lines)
        assert await target.export_lines() == exported_lines
        third_report = await target.import_lines(*exported_lines)
        assert third_report["skipped"] == len(exported_lines)
        assert await target.export_lines() == exported_lines
        _assert_fields_exported(memories, exported_lines)


def _assert_fields_exported(memories: list[dict[str, Any]], exported_lines: list[bytes]) -> None:
    fields_by_id = {memory["id"]: orjson.loads(orjson.dumps(memory)) for memory in memories}
    for line in exported_lines:
        exported_memory = orjson.loads(line)
        for name, value in fields_by_id[exported_memory["id"]].items():
            assert _comparable(exported_memory[name]) == _comparable(value), name


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return [
            {"seq": None, "speaker": None, "role": None} | element if isinstance(element, dict) else element
            for element in value
        ]
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
