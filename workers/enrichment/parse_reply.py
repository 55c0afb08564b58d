"""From a model's reply to entries: what can be used is cleaned, what can't is left out."""

import math
from collections.abc import Sequence
from typing import Any

from shared.foundation import errors, model_output, validation
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import MAX_CONTENT, Memory, MemoryDraft

_MOST = 200
"""Items that one note can hold; a model that finds more is going round in circles."""
_ECHO = 40
"""Characters from which a sentence of the directive is recognised when a model gives it back."""


def parse_drafts(reply: str, raw: Memory, directive: str) -> list[MemoryDraft]:
    """Return the drafts of a reply, at most one for each distinct fact; empty only for `[]`.

    Raises errors.BadReply when the reply holds items but none of them can be used, or too many.
    """
    items = model_output.parse_objects(reply)
    if len(items) > _MOST:
        raise errors.InvalidModelReply(f"{len(items)} items made of one note")
    usable = [draft for item in items if (draft := _draft(item, raw, directive)) is not None]
    if items and not usable:
        raise errors.InvalidModelReply("no item of the reply has content")
    distinct: dict[str, MemoryDraft] = {}
    for draft in usable:
        distinct.setdefault(normalize(draft.content), draft)
    return list(distinct.values())


def _draft(item: dict[str, Any], raw: Memory, directive: str) -> MemoryDraft | None:
    content = item.get("content")
    if not isinstance(content, str) or _says_nothing(content) or _is_echo(content, directive):
        return None
    try:
        checked = validation.check_text(content.strip(), "content", MAX_CONTENT)
    except errors.Invalid:
        return None
    category = validation.sanitize_category(item["category"]) if item.get("category") else raw.category
    return MemoryDraft(
        content=checked,
        category=category,
        tags=_tags(item.get("tags")),
        metadata=raw.metadata | _metadata(item.get("metadata")),
        importance=_importance(item.get("importance"), raw.importance),
        occurred_at=raw.occurred_at,
    )


def _says_nothing(content: str) -> bool:
    """Tell whether there is no letter and no digit: blank, or the `…` of the shape that was asked for."""
    return not any(character.isalnum() for character in content)


def _is_echo(content: str, directive: str) -> bool:
    return len(content) >= _ECHO and normalize(content) in normalize(directive)


def _tags(value: Any) -> tuple[str, ...]:
    offered: Sequence[Any] = value.split(",") if isinstance(value, str) else value
    if not isinstance(offered, Sequence):
        return ()
    kept: list[str] = []
    for tag in offered[: validation.MAX_TAGS]:
        if not isinstance(tag, (str, int, float)):
            continue
        try:
            kept += validation.check_tags([str(tag).strip()])
        except errors.Invalid:
            continue
    return tuple(dict.fromkeys(kept))


def _metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    texts = {str(key): str(told) for key, told in value.items() if isinstance(told, (str, int, float))}
    try:
        return validation.check_metadata(texts)
    except errors.Invalid:
        return {}


def _importance(value: Any, otherwise: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return otherwise
    if isinstance(value, float) and not math.isfinite(value):
        return otherwise
    return float(min(1, max(0, value)))  # clamped first: JSON's integers may be too large for a float
