"""Read and maintain the conversation window: the last turns of a session, cached in Redis.

Postgres has all turns. A cached window that is incomplete is ignored and rebuilt from Postgres by
its next reader, so neither a failed update nor an unavailable Redis loses a turn. A window whose
session has been idle for longer than the setting `window_ttl` is empty.

A cached turn says where in the log it stands, and of which revision of the log it is. An edit or a deletion
makes a new revision: whatever was cached before, or is being cached meanwhile, is not read any more.
"""

from collections.abc import Sequence
from typing import NamedTuple

import orjson
import structlog

from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import log_queries
from shared.conversation.turns.log_queries import LogEnd
from shared.conversation.turns.turn import Turn
from shared.foundation import errors
from shared.foundation.content import Subject, declare_store
from shared.foundation.scope import Caller
from shared.infra import redis as redis_client
from shared.platform.resources import Resources

FAMILY = declare_store(
    "redis",
    "window",
    *(Subject.SESSION, Subject.TURN, Subject.WITHDRAWN_TURN, Subject.MEMORY),
    reason="deleted with its session, its turns, and the memories of which it shows a line",
)
log = structlog.get_logger()


class CachedTurn(NamedTuple):
    """A turn in the cache, its place in the log, from 1, and the revision of the log.

    Items are not cached, because contexts don't show them; `has_item` tells that the turn has one.
    """

    turn: Turn
    position: int
    log_revision: int
    has_item: bool


_PLACE = ("position", "log_revision", "has_item")


def key(resources: Resources, tenant: str, session_id: str) -> str:
    """Return the Redis key of a session's window."""
    return f"{resources.settings.prefix}:{FAMILY}:{{{tenant}:{session_id}}}"


async def read_window(resources: Resources, caller: Caller, session_id: str, count: int) -> list[Turn]:
    """Return the last turns of a session, oldest first; none if the session was idle for too long.

    Raises errors.NotFound for a session that the caller may not see.
    """
    settings = resources.settings
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, settings, caller, session_id)
    count = min(count, settings.window_max_turns)
    try:
        cached_turns = await read_cache(resources, session.tenant, session.id, count)
    except errors.Unavailable:
        cached_turns = None
    if cached_turns is not None and any(cached.has_item for cached in cached_turns):
        cached_turns = None
    return await load_turns(resources, session, count, cached_turns)


async def read_cache(resources: Resources, tenant: str, session_id: str, count: int) -> list[CachedTurn]:
    """Return the cached ones of the last turns; raise errors.Unavailable when Redis is unavailable."""
    with redis_client.failures_as_unavailable():
        members = await resources.redis.zrange(key(resources, tenant, session_id), -count, -1)
    unpacked = [_unpack(str(member)) for member in members]
    return [cached for cached in unpacked if cached is not None]


async def load_turns(
    resources: Resources, session: Session, count: int, cached_turns: list[CachedTurn] | None
) -> list[Turn]:
    """Return the last turns of a session, oldest first, from the cache if it is complete, else from Postgres.

    `cached_turns` is the result of `read_cache`, or None if Redis was unavailable. A session that
    was idle for too long has no turns.
    """
    if session.window_expired:
        return []
    if cached_turns is not None and _is_complete(cached_turns, session, count):
        return [cached.turn for cached in cached_turns]
    max_turns = resources.settings.window_max_turns
    async with resources.postgres.for_tenant(session.tenant) as tx:
        end = await log_queries.list_end(tx, session.id, max_turns)
    if cached_turns is not None and end.turns:
        await _rebuild(resources, session, end)
    return end.turns[-count:]


def _is_complete(cached_turns: Sequence[CachedTurn], session: Session, count: int) -> bool:
    first = session.turn_count - min(count, session.turn_count) + 1
    expected = [(position, session.log_revision) for position in range(first, session.turn_count + 1)]
    return [(cached.position, cached.log_revision) for cached in cached_turns] == expected


async def push(resources: Resources, session: Session, turns: Sequence[Turn], *, after: int) -> None:
    """Add turns to the window that follow the first `after` turns of the log.

    `session` is the session as it was when the turns were stored. If Redis is unavailable, the next reader
    rebuilds the window.
    """
    await _write(resources, session, _place(turns, after, session.log_revision), replace=False)


async def _rebuild(resources: Resources, session: Session, end: LogEnd) -> None:
    """Replace the window by the end of the log."""
    cached_turns = _place(end.turns, end.turn_count - len(end.turns), end.log_revision)
    await _write(resources, session, cached_turns, replace=True)


def _place(turns: Sequence[Turn], after: int, log_revision: int) -> list[CachedTurn]:
    return [
        CachedTurn(turn, position, log_revision, turn.item is not None)
        for position, turn in enumerate(turns, start=after + 1)
    ]


async def _write(
    resources: Resources, session: Session, cached_turns: Sequence[CachedTurn], *, replace: bool
) -> None:
    settings = resources.settings
    name = key(resources, session.tenant, session.id)
    members = {_pack(cached): cached.position for cached in cached_turns[-settings.window_max_turns :]}
    try:
        with redis_client.failures_as_unavailable():
            async with resources.redis.pipeline(transaction=True) as pipe:
                if replace:
                    pipe.delete(name)
                pipe.zadd(name, members)
                pipe.zremrangebyrank(name, 0, -settings.window_max_turns - 1)
                pipe.expire(name, settings.window_ttl)
                await pipe.execute()
    except errors.Unavailable as error:
        log.warning("window_not_updated", session_id=session.id, reason=str(error))


async def delete(resources: Resources, tenant: str, session_ids: Sequence[str]) -> None:
    """Delete windows whose text has been deleted. Raise errors.Unavailable if Redis is unavailable."""
    with redis_client.failures_as_unavailable():
        await resources.redis.delete(*(key(resources, tenant, session_id) for session_id in session_ids))


def _pack(cached: CachedTurn) -> bytes:
    place = {name: getattr(cached, name) for name in _PLACE}
    return orjson.dumps(cached.turn.pack() | {"item": None} | place)


def _unpack(member: str) -> CachedTurn | None:
    """Return a cached turn, or None if a process of an earlier version has cached it without its place."""
    packed = orjson.loads(member)
    is_placed = packed.keys() >= set(_PLACE)
    return CachedTurn(Turn.unpack(packed), *(packed[name] for name in _PLACE)) if is_placed else None
