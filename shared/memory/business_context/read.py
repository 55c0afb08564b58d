"""Read the business context of a tenant."""

import hashlib
from collections.abc import Sequence
from typing import Any

from shared.foundation.scope import Caller
from shared.memory.business_context import queries
from shared.memory.business_context.part import Part, origin_of, parts_of, provenance, text_of
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources


async def read(resources: Resources, caller: Caller) -> dict[str, Any]:
    """Return {content, version, origin, provenance}: an empty content if nobody has written any.

    `provenance` names sessions and users, so only a key that may write the text is shown it.
    """
    rights.require_area(caller, Area.TENANT, Action.READ)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        parts = parts_of(await queries.list_rows(tx))
    return to_json(parts, is_owner=rights.is_unbound(caller))


def to_json(parts: Sequence[Part], *, is_owner: bool) -> dict[str, Any]:
    """Return a business context as the API does."""
    content = text_of(parts)
    origin = origin_of(parts)
    return {
        "content": content,
        "version": version_of(content),
        "origin": None if origin is None else origin.model_dump(mode="json"),
        "provenance": provenance(parts) if is_owner else [],
    }


def version_of(content: str) -> int:
    """Return the version of a text: a digest of 48 bits.

    So the version changes with the text, however it was changed: also when an erasure takes lines away.
    """
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:6], "big") or 1
