"""Join the tags and the metadata of memories that become one, within the limits of a memory."""

from collections.abc import Iterable, Mapping

from shared.foundation import validation
from shared.foundation.categories import ANTI_PATTERN_TAG

PERMISSION = "requires_user_permission"
INFERRED = "inferred"
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


def requires_permission(metadata: Mapping[str, str]) -> bool:
    """Tell whether an agent needs the user's permission to act on a memory with this metadata."""
    return metadata.get(PERMISSION, "").strip().lower() == "true"
