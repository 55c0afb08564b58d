"""Whatever can be stored comes out, goes in elsewhere and comes out again unchanged."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given
from hypothesis import settings as within
from hypothesis import strategies as some

from shared.foundation import config
from shared.platform.resources import open_resources
from tests.integration.transfer.conftest import new_house

_IDS = some.integers(0, 16**12 - 1).map(lambda number: f"{number:012x}")
_TEXT = some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)
_WORDS = _TEXT.filter(lambda words: words.strip() != "")
_TAG = some.text(
    some.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=64
).filter(lambda tag: tag.strip() != "")
_MOMENT = some.datetimes(timezones=some.just(UTC)).filter(lambda moment: 2 <= moment.year <= 9998)
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
) | some.fixed_dictionaries({"state": some.just("failed"), "failure_reason": _TEXT})
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
@within(max_examples=60, deadline=None)
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
