"""Parse a model's reply into memory drafts. Valid parts are sanitised, invalid parts are left out."""

import math
from collections.abc import Sequence
from typing import Any

from shared.foundation import errors, model_output, validation
from shared.foundation.categories import ACTIVE_PLANS, EPISODES, PREFERENCES, is_anti_pattern, is_below
from shared.memory.longterm import labels
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import MAX_CONTENT, Memory, MemoryDraft

_MAX_ITEMS = 200
"""A note can't contain more items: a model that returns more is repeating itself."""
_OTHER_KINDS = (ACTIVE_PLANS, EPISODES)
_MIN_ECHO_LENGTH = 40
"""Characters from which content that is also in the directive counts as copied from there."""


def parse_drafts(reply: str, raw: Memory, directive: str) -> list[MemoryDraft]:
    """Return the drafts of a reply, one for each distinct content; empty only for `[]`.

    Raise errors.InvalidModelReply when none of the reply's items is valid, or when there are too many.
    """
    items = model_output.parse_objects(reply)
    if len(items) > _MAX_ITEMS:
        raise errors.InvalidModelReply(f"{len(items)} items made of one note")
    valid_drafts = [draft for item in items if (draft := _parse_draft(item, raw, directive)) is not None]
    if items and not valid_drafts:
        raise errors.InvalidModelReply("no item of the reply has content")
    distinct: dict[str, MemoryDraft] = {}
    for draft in valid_drafts:
        distinct.setdefault(normalize(draft.content), draft)
    return list(distinct.values())


def _parse_draft(item: dict[str, Any], raw: Memory, directive: str) -> MemoryDraft | None:
    content = item.get("content")
    if not isinstance(content, str) or _has_no_text(content) or _is_copied(content, directive):
        return None
    try:
        valid_content = validation.check_text(content.strip(), "content", MAX_CONTENT)
    except errors.Invalid:
        return None
    is_warning = is_anti_pattern(raw.category, raw.tags)
    return MemoryDraft(
        content=valid_content,
        category=_parse_category(item.get("category"), raw),
        tags=labels.given_tags(_parse_tags(item.get("tags")), raw.tags, of_warning=is_warning),
        metadata=labels.join_metadata(
            raw.metadata, labels.given_metadata(_parse_metadata(item.get("metadata")))
        ),
        importance=labels.limited_importance(
            _parse_importance(item.get("importance"), raw.importance), raw.importance
        ),
        occurred_at=raw.occurred_at,
    )


def _parse_category(value: Any, raw: Memory) -> str | None:
    """Return the model's category, or the note's if it would become another kind of memory by it."""
    category = validation.sanitize_category(value) if value else raw.category
    of_warning = is_anti_pattern(raw.category, raw.tags)
    of_preference = is_below(PREFERENCES, raw.category)
    is_other = labels.is_kind_of_its_own(category, of_warning=of_warning, of_preference=of_preference)
    is_other |= any(is_below(root, category) and not is_below(root, raw.category) for root in _OTHER_KINDS)
    return raw.category if is_other else category


def _has_no_text(content: str) -> bool:
    """Return whether there is no letter and no digit: a blank text, or the `…` of the prompt's example."""
    return not any(character.isalnum() for character in content)


def _is_copied(content: str, directive: str) -> bool:
    return len(content) >= _MIN_ECHO_LENGTH and normalize(content) in normalize(directive)


def _parse_tags(value: Any) -> tuple[str, ...]:
    values: Sequence[Any] = value.split(",") if isinstance(value, str) else value
    if not isinstance(values, Sequence):
        return ()
    tags: list[str] = []
    for tag in values[: validation.MAX_TAGS]:
        if not isinstance(tag, (str, int, float)):
            continue
        try:
            tags += validation.check_tags([str(tag).strip()])
        except errors.Invalid:
            continue
    return tuple(dict.fromkeys(tags))


def _parse_metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    texts = {str(key): str(text) for key, text in value.items() if isinstance(text, (str, int, float))}
    try:
        return validation.check_metadata(texts)
    except errors.Invalid:
        return {}


def _parse_importance(value: Any, default: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return default
    if isinstance(value, float) and not math.isfinite(value):
        return default
    return float(min(1, max(0, value)))
