"""The cached copy of a scratchpad in Redis. Postgres has every snippet, and writes go there first.

A copy says of which revision it is. Every change of a scratchpad raises its revision, so a reader that knows
the current one tells a copy that is out of date, whatever became of the writes to Redis. What it finds in
Postgres instead it caches anew.
"""

from collections.abc import Sequence
from typing import Any

import orjson
import structlog

from shared.conversation.scratchpad import queries
from shared.conversation.scratchpad.snippet import Snippet
from shared.conversation.sessions.session import Session
from shared.foundation import errors
from shared.foundation.content import Subject, declare_store
from shared.infra import redis as redis_client
from shared.platform.resources import Resources

FAMILY = declare_store("redis", "scratchpad", Subject.SESSION, reason="deleted with its session")
_HIDDEN = ("slot", "revision", "playbook_id")
log = structlog.get_logger()


def key(resources: Resources, tenant: str, session_id: str) -> str:
    """Return the Redis key of a session's scratchpad."""
    return f"{resources.settings.prefix}:{FAMILY}:{{{tenant}:{session_id}}}"


async def load(
    resources: Resources, session: Session, revision: int | None
) -> tuple[list[Snippet], list[str]]:
    """Return the snippets of a session whose scratchpad has this revision, oldest first.

    Return also what was unavailable: `redis`, or nothing.
    """
    if revision is None:
        return [], []
    try:
        snippets = await _read(resources, session, revision)
    except errors.Unavailable as error:
        return await _load_stored(resources, session), [error.dependency]
    if snippets is None:
        snippets = await _load_stored(resources, session)
        return snippets, await store(resources, session, snippets)
    return snippets, []


async def store(resources: Resources, session: Session, snippets: Sequence[Snippet]) -> list[str]:
    """Cache the snippets of a session; return what was unavailable. Then the next reader caches them."""
    settings, revision = resources.settings, revision_of(snippets)
    members = [_member(snippet) for snippet in snippets]
    copy = orjson.dumps({"revision": revision, "snippets": members})
    try:
        with redis_client.failures_as_unavailable():
            name = key(resources, session.tenant, session.id)
            await resources.redis.set(name, copy, ex=settings.window_ttl)
    except errors.Unavailable as error:
        log.warning("scratchpad_not_cached", session_id=session.id, reason=str(error))
        return [error.dependency]
    return []


def _member(snippet: Snippet) -> dict[str, Any]:
    hidden = {name: getattr(snippet, name) for name in _HIDDEN}
    origin = snippet.origin.model_dump() | {"key_id": snippet.origin.key_id}
    return snippet.model_dump() | hidden | {"origin": origin}


def revision_of(snippets: Sequence[Snippet]) -> int | None:
    """Return the revision of a scratchpad with these snippets, as `queries.last_revision` does."""
    return max((snippet.revision for snippet in snippets), default=None)


async def delete(resources: Resources, tenant: str, session_ids: Sequence[str]) -> None:
    """Delete the copies of sessions that were deleted. Raise errors.Unavailable if Redis is unavailable."""
    with redis_client.failures_as_unavailable():
        await resources.redis.delete(*(key(resources, tenant, session_id) for session_id in session_ids))


async def _read(resources: Resources, session: Session, revision: int) -> list[Snippet] | None:
    """Return the cached snippets, or None if there is no copy of this revision."""
    with redis_client.failures_as_unavailable():
        copy = await resources.redis.get(key(resources, session.tenant, session.id))
    cached = {} if copy is None else orjson.loads(copy)
    if cached.get("revision") != revision:
        return None
    return [Snippet.model_validate(member) for member in cached["snippets"]]


async def _load_stored(resources: Resources, session: Session) -> list[Snippet]:
    async with resources.postgres.for_tenant(session.tenant) as tx:
        return await queries.list_snippets(tx, session.id)
