"""Join the tags and the metadata of memories that become one, and limit the labels that models give."""

from collections.abc import Iterable, Mapping

from shared.foundation import validation
from shared.foundation.categories import (
    ANTI_PATTERN_TAG,
    ANTI_PATTERNS,
    PREFERENCES,
    is_anti_pattern,
    is_below,
)

PERMISSION = "requires_user_permission"
INFERRED = "inferred"
SOURCE = "source"
PROMOTION = "promotion"
"""What `source` in the metadata says of a memory that was promoted from a scratchpad."""
MAX_GIVEN_IMPORTANCE = 0.7
"""The highest importance that a model gives. From 0.8 on memories are never pruned, nor closed by mining."""
_ALWAYS_KEPT = (ANTI_PATTERN_TAG, INFERRED)
"""Tags that change how a memory is treated."""


def join_tags(present: Iterable[str], added: Iterable[str]) -> list[str]:
    """Return the tags of a memory after others were added, in the order in which they came.

    If there are more than a memory may have, the oldest are left out, but never the tags that change how the
    memory is treated.
    """
    tags = list(dict.fromkeys([*present, *added]))
    surplus = len(tags) - validation.MAX_TAGS
    if surplus <= 0:
        return tags
    left_out = set([tag for tag in tags if tag not in _ALWAYS_KEPT][:surplus])
    return [tag for tag in tags if tag not in left_out]


def join_metadata(present: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata of a memory after others were added.

    A present value stays, except that a permission that either requires is required. If there are more
    pairs than a memory may have, the last ones that were added are left out.
    """
    metadata = {**present, **{key: value for key, value in added.items() if key not in present}}
    must_ask = requires_permission(present) or requires_permission(added)
    required = {PERMISSION: "true"} if must_ask else {}
    others = [(key, value) for key, value in metadata.items() if key not in required]
    return dict(others[: validation.MAX_METADATA_PAIRS - len(required)]) | required


def is_kind_of_its_own(category: str | None, *, of_warning: bool, of_preference: bool) -> bool:
    """Tell whether a model's category makes an anti-pattern or a preference of what is none.

    Agents are led by both, so no text that a model reads may become one because it asks for that.
    """
    is_new_warning = is_below(ANTI_PATTERNS, category) and not of_warning
    return is_new_warning or (is_below(PREFERENCES, category) and not of_preference)


def given_tags(tags: Iterable[str], present: Iterable[str], *, of_warning: bool) -> tuple[str, ...]:
    """Return the tags that a model may give: those that change a treatment, if `present`."""
    allowed = {tag.casefold() for tag in present} | ({ANTI_PATTERN_TAG} if of_warning else set())
    return tuple(tag for tag in tags if tag.casefold() not in {*_ALWAYS_KEPT} - allowed)


def given_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata that a model may give: no origin, and no permission."""
    must_ask = {PERMISSION: "true"} if requires_permission(metadata) else {}
    return {key: value for key, value in metadata.items() if key not in {SOURCE, PERMISSION}} | must_ask


def limited_importance(proposed: float, evidence: float = 0.0) -> float:
    """Return the importance that a model may give to what it makes of something of importance `evidence`."""
    return min(proposed, max(MAX_GIVEN_IMPORTANCE, evidence))


def leading_labels(category: str | None, tags: Iterable[str], importance: float) -> frozenset[str]:
    """Return the names of the labels by which a memory leads agents: they need a caller, or trusted text."""
    labels = {
        "anti-pattern": is_anti_pattern(category, tuple(tags)),
        "preference": is_below(PREFERENCES, category),
        "importance": importance > MAX_GIVEN_IMPORTANCE,
    }
    return frozenset(name for name, has_label in labels.items() if has_label)


def requires_permission(metadata: Mapping[str, str]) -> bool:
    """Tell whether an agent needs the user's permission to act on a memory with this metadata."""
    return metadata.get(PERMISSION, "").strip().lower() == "true"
