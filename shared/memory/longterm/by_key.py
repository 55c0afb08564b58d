"""Write and read memories by the keys that callers chose, and list the namespaces of the keys."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from shared.foundation import errors, validation
from shared.foundation.scope import Caller, Scope
from shared.foundation.versions import Expected
from shared.memory.longterm import key_queries, keyed, save, source_check, tombstones
from shared.memory.longterm.key_queries import ANY_SEGMENT
from shared.memory.longterm.memory import Memory, MemoryDraft, Name
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources

JsonObject = dict[str, Any]


class KeyedResponse(NamedTuple):
    """A memory as JSON after a write under its key, and whether the key was free before."""

    memory: JsonObject
    is_new: bool


async def put(
    resources: Resources,
    scope: Scope,
    caller: Caller,
    draft: MemoryDraft,
    expected: Expected | None = None,
    key: IdempotencyKey | None = None,
) -> KeyedResponse:
    """Save a validated draft with a key, in place of the memory that has the key.

    If a request with this idempotency `key` was done before, nothing is saved and its stored response is
    returned, after what it left unindexed is written through. Raises errors.PreconditionFailed if what is
    stored is not expected, and errors.Invalid for a source that the caller may not name.
    """
    async with resources.transaction(scope.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            stored_response = KeyedResponse(**request.stored)
            save.index_repeated(tx, [stored_response.memory["id"]])
            return stored_response
        item = await source_check.require(tx, caller, draft)
        write = await keyed.save_if(tx, scope, caller.key_id, item, expected)
        await tombstones.remove(tx, scope, [draft.content])
        await save.index(tx, [write.memory])
        response = KeyedResponse(write.memory.model_dump(mode="json"), write.is_new)
        await request.store(response._asdict(), record_ids=[write.memory.id], user_id=scope.user_id)
        return response


async def read(resources: Resources, scope: Scope, name: Name) -> Memory:
    """Return the memory of exactly this scope that has this name. Raises errors.NotFound if there is none."""
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        memory = await key_queries.get(tx, scope, name)
    if memory is None:
        raise errors.NotFound("no memory has this key in this namespace, agent and user")
    return memory


async def list_namespaces(
    resources: Resources,
    scope: Scope,
    prefix: str | None,
    suffix: str | None,
    max_depth: int | None,
    after: str | None,
    limit: int,
) -> list[tuple[str, int]]:
    """Return (namespace, memories in it) of exactly this scope, sorted, from those after `after`.

    `prefix` and `suffix` are paths of whole segments, in which `*` stands for any one segment. Deeper
    namespaces than `max_depth` count as their first segments. Raises errors.Invalid for what is no path.
    """
    prefix_segments, suffix_segments = _segments(prefix, "prefix"), _segments(suffix, "suffix")
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await key_queries.list_namespaces(
            tx, scope, prefix_segments, suffix_segments, max_depth, after, limit
        )


def _segments(path: str | None, field: str) -> Sequence[str]:
    if not path:
        return []
    segments = path.split("/")
    validation.check_category("/".join("x" if part == ANY_SEGMENT else part for part in segments), field)
    return segments
