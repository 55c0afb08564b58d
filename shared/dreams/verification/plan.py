"""What a model proposes to do with the entries it was shown. Pure data: nothing here is believed yet.

`parse` reads generously, because a plan can do no harm: every item that the model wrote stays an
item of the plan, even one without ids or content, so that `check` can answer for each.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shared.foundation import model_output

EPHEMERAL = "ephemeral"
DUPLICATE = "duplicate"
OUTDATED = "outdated"

_DELETIONS = ("toDelete", "to_delete")
_REPLACEMENTS = ("toSave", "to_save")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Deletion:
    """An entry to go without naming what takes its place. `reason` is lower-case."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """An entry to take the place of its sources. `importance` is finite, or None when untold."""

    content: str
    category: str | None
    tags: tuple[str, ...]
    source_ids: tuple[str, ...]
    importance: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a model proposes, in its order."""

    deletions: tuple[Deletion, ...]
    replacements: tuple[Replacement, ...]


def parse(reply: str) -> Plan:
    """Read `{toDelete: [{id, reason} | id], toSave: [{content, category, tags, sourceIds}]}`.

    A bare id is read as a duplicate. Raises errors.BadReply when the reply holds no such object.
    """
    told = model_output.parse_object(reply, *_DELETIONS, *_REPLACEMENTS)
    return Plan(
        deletions=tuple(map(_deletion, _items(told, _DELETIONS))),
        replacements=tuple(map(_replacement, _items(told, _REPLACEMENTS))),
    )


def _items(told: dict[str, Any], names: Iterable[str]) -> list[Any]:
    value: Any = next((told[name] for name in names if told.get(name)), [])
    return value if isinstance(value, list) else [value]


def _deletion(item: Any) -> Deletion:
    if not isinstance(item, dict):
        return Deletion(_id(item), DUPLICATE)
    reason = item.get("reason")
    return Deletion(_id(item.get("id")), reason.strip().lower() if isinstance(reason, str) else DUPLICATE)


def _replacement(item: Any) -> Replacement:
    told = item if isinstance(item, dict) else {"content": item}
    content, category = told.get("content"), told.get("category")
    return Replacement(
        content=content.strip() if isinstance(content, str) else "",
        category=category if isinstance(category, str) and category.strip() else None,
        tags=tuple(tag.strip() for tag in to_list(told.get("tags")) if isinstance(tag, str)),
        source_ids=tuple(map(_id, to_list(told.get("sourceIds") or told.get("source_ids")))),
        importance=to_unit_interval(told.get("importance")),
    )


def _id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # an id of digits alone
    if not isinstance(value, str):
        return ""
    # Entries are shown as `[ID:…]`, and some models give the whole label back.
    return value.strip(" []\t\n").lower().removeprefix("id:").strip()


def to_list(value: Any) -> list[Any]:
    """Return what a model gave as a list; a text is one item, or several between commas."""
    if isinstance(value, str):
        return value.split(",")
    return value if isinstance(value, list) else []


def to_unit_interval(value: Any) -> float | None:
    """Return a number of a model within 0..1, or None for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(min(1, max(0, value)))  # in this order: not every int fits into a float


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan in the model's shape, as any store can hold it (`storable`)."""
    return {
        "toDelete": [{"id": storable(d.id), "reason": storable(d.reason)} for d in plan.deletions],
        "toSave": [
            {
                "content": storable(r.content),
                "category": r.category and storable(r.category),
                "tags": [storable(tag) for tag in r.tags],
                "sourceIds": [storable(one) for one in r.source_ids],
                "importance": r.importance,
            }
            for r in plan.replacements
        ],
    }


def storable(text: str) -> str:
    """Return a text with U+FFFD for NUL and half characters, which Postgres or JSON refuse."""
    return _UNSTORABLE.sub("\ufffd", text)
