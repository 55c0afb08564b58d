"""A model's plan for the memories that it was shown, as data that nothing has checked yet.

`parse` is lenient, because a plan alone changes nothing. Every item that the model wrote stays an item of
the plan, even one without ids or content, so that `check` can accept or reject each of them.
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
    """A memory to archive, without naming a replacement. `reason` is in lower case."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """A memory that replaces its sources. `importance` is from 0 to 1, or None if the model gave none."""

    content: str
    category: str | None
    tags: tuple[str, ...]
    source_ids: tuple[str, ...]
    importance: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The items that a model proposes, in its order."""

    deletions: tuple[Deletion, ...]
    replacements: tuple[Replacement, ...]


def parse(reply: str) -> Plan:
    """Parse `{toDelete: [{id, reason} | id], toSave: [{content, category, tags, sourceIds}]}`.

    An id without a reason is read as a duplicate. Raises errors.InvalidModelReply if the reply has no such
    object.
    """
    payload = model_output.parse_object(reply, *_DELETIONS, *_REPLACEMENTS)
    return Plan(
        deletions=tuple(map(_parse_deletion, _items(payload, _DELETIONS))),
        replacements=tuple(map(_parse_replacement, _items(payload, _REPLACEMENTS))),
    )


def _items(payload: dict[str, Any], names: Iterable[str]) -> list[Any]:
    value: Any = next((payload[name] for name in names if payload.get(name)), [])
    return value if isinstance(value, list) else [value]


def _parse_deletion(item: Any) -> Deletion:
    if not isinstance(item, dict):
        return Deletion(_parse_id(item), DUPLICATE)
    reason = item.get("reason")
    return Deletion(
        _parse_id(item.get("id")), reason.strip().lower() if isinstance(reason, str) else DUPLICATE
    )


def _parse_replacement(item: Any) -> Replacement:
    fields = item if isinstance(item, dict) else {"content": item}
    content, category = fields.get("content"), fields.get("category")
    return Replacement(
        content=content.strip() if isinstance(content, str) else "",
        category=category if isinstance(category, str) and category.strip() else None,
        tags=tuple(tag.strip() for tag in to_list(fields.get("tags")) if isinstance(tag, str)),
        source_ids=tuple(map(_parse_id, to_list(fields.get("sourceIds") or fields.get("source_ids")))),
        importance=to_unit_interval(fields.get("importance")),
    )


def _parse_id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # an id of digits only
    if not isinstance(value, str):
        return ""
    # Memories are shown as `[ID:…]`, and some models return the whole label.
    return value.strip(" []\t\n").lower().removeprefix("id:").strip()


def to_list(value: Any) -> list[Any]:
    """Return a model's value as a list. A text is split at its commas; anything else is an empty list."""
    if isinstance(value, str):
        return value.split(",")
    return value if isinstance(value, list) else []


def to_unit_interval(value: Any) -> float | None:
    """Return a model's number within 0 and 1, or None for anything but a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(min(1, max(0, value)))  # min and max first: float() fails on very large integers


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan in the model's own format, with texts that can be stored."""
    return {
        "toDelete": [
            {"id": storable(deletion.id), "reason": storable(deletion.reason)} for deletion in plan.deletions
        ],
        "toSave": [
            {
                "content": storable(replacement.content),
                "category": replacement.category and storable(replacement.category),
                "tags": [storable(tag) for tag in replacement.tags],
                "sourceIds": [storable(source_id) for source_id in replacement.source_ids],
                "importance": replacement.importance,
            }
            for replacement in plan.replacements
        ],
    }


def storable(text: str) -> str:
    """Return a text with U+FFFD in place of NUL and lone surrogates, which Postgres and JSON refuse."""
    return _UNSTORABLE.sub("\ufffd", text)
