"""Whatever can be stored comes out, goes in elsewhere and comes out again unchanged."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from shared.foundation import config
from shared.platform.resources import open_resources
from tests.integration.transfer.conftest import new_stack

_IDS = st.integers(0, 16**12 - 1).map(lambda number: f"{number:012x}")
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)
_WORDS = _TEXT.filter(lambda words: words.strip() != "")
_TAG = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=64).filter(
    lambda tag: tag.strip() != ""
)
_MOMENT = st.datetimes(timezones=st.just(UTC)).filter(lambda moment: 2 <= moment.year <= 9998)
_SOURCE = st.fixed_dictionaries(
    {"session_id": st.from_regex(r"[a-z0-9_-]{1,9}(/[a-z]{1,9})?", fullmatch=True)},
    optional={
        "seq": st.integers(0, 2**31 - 1),
        "speaker": _WORDS.map(lambda name: name[:99] + "."),
        "role": st.just("user"),
    },
)
_ARCHIVED = st.fixed_dictionaries(
    {"state": st.just("archived"), "archived_at": _MOMENT, "archive_reason": st.none() | _TEXT}
)
_LIVE = st.fixed_dictionaries({"state": st.sampled_from(["final", "kept-raw"])}) | st.fixed_dictionaries(
    {"state": st.just("failed"), "failure_reason": _TEXT}
)
_REST = st.fixed_dictionaries(
    {"id": _IDS, "content": _WORDS},
    optional={
        "category": st.none()
        | st.from_regex(r"[A-Za-z0-9_-]{1,9}(/[A-Za-z0-9_-]{1,9}){0,3}", fullmatch=True),
        "tags": st.lists(_TAG, max_size=4, unique=True),
        "metadata": st.dictionaries(
            _TAG, st.text(_TEXT.map(lambda fields: fields[0]), max_size=9), max_size=4
        ),
        "importance": st.floats(0, 1),
        "occurred_at": st.none() | _MOMENT,
        "sources": st.lists(_SOURCE, max_size=3),
        "created_at": _MOMENT,
        "updated_at": st.none() | _MOMENT,
        "last_seen_at": _MOMENT,
        "reinforcement_count": st.integers(1, 2**31 - 1),
        "superseded_by": st.lists(_IDS, max_size=3),
        "derived_from": st.lists(_IDS, max_size=3),
    },
)
_ENTRY = st.builds(lambda rest, state: rest | state, _REST, _LIVE | _ARCHIVED)


@given(entries=st.lists(_ENTRY, max_size=6, unique_by=lambda source: source["id"]))
@hypothesis_settings(max_examples=60, deadline=None)
def test_out_and_into_an_empty_tenant_and_out_again_gives_the_same_lines(
    settings: config.Settings, entries: list[dict[str, Any]]
) -> None:
    asyncio.run(_round_trip(settings, entries))


async def _round_trip(settings: config.Settings, entries: list[dict[str, Any]]) -> None:
    async with (
        open_resources(settings) as resources,
        new_stack(resources) as source,
        new_stack(resources) as target,
    ):
        first = await source.import_entries(*entries)
        assert first["malformed"] == []
        exported = await source.lines()
        assert len(exported) == first["created"] == len(entries) - len(first["duplicates"])
        second = await target.import_entries(*exported)
        assert second["created"] == len(exported)
        assert await target.lines() == exported
        repeated = await target.import_entries(*exported)
        assert repeated["skipped"] == len(exported)
        assert await target.lines() == exported
        _as_exported(entries, exported)


def _as_exported(entries: list[dict[str, Any]], exported: list[bytes]) -> None:
    fields = {source["id"]: orjson.loads(orjson.dumps(source)) for source in entries}
    for raw in exported:
        shown = orjson.loads(raw)
        for name, value in fields[shown["id"]].items():
            assert _plain(shown[name]) == _plain(value), name


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [{"seq": None, "speaker": None, "role": None} | x if isinstance(x, dict) else x for x in value]
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
