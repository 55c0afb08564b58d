"""Read and maintain the conversation window: the last turns of a session, cached in Redis.

Postgres has all turns. A cached window that is incomplete is ignored and rebuilt from Postgres by
its next reader, so neither a failed update nor an unavailable Redis loses a turn. A window whose
session has been idle for longer than the setting `window_ttl` is empty.
"""

from collections.abc import Sequence

import orjson
import structlog

from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import queries
from shared.conversation.turns.turn import Turn
from shared.foundation import errors
from shared.foundation.content import Subject, declare_store
from shared.foundation.scope import Caller
from shared.infra import redis as redis_client
from shared.platform.resources import Resources

FAMILY = declare_store(
    "redis",
    "window",
    *(Subject.SESSION, Subject.TURN, Subject.MEMORY),
    reason="deleted with its session, its turns, and the memories of which it shows a line",
)
log = structlog.get_logger()


def key(resources: Resources, tenant: str, session_id: str) -> str:
    """Return the Redis key of a session's window."""
    return f"{resources.settings.prefix}:{FAMILY}:{{{tenant}:{session_id}}}"


async def read_window(resources: Resources, caller: Caller, session_id: str, count: int) -> list[Turn]:
    """Return the last turns of a session, oldest first; none if the session was idle for too long.

    Raises errors.NotFound for a session that the caller may not see.
    """
    settings = resources.settings
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        session = await get_session(connection, settings, caller, session_id)
    count = min(count, settings.window_max_turns)
    try:
        cached_turns = await read_cache(resources, session.tenant, session.id, count)
    except errors.Unavailable:
        cached_turns = None
    return await load_turns(resources, session, count, cached_turns)


async def read_cache(resources: Resources, tenant: str, session_id: str, count: int) -> list[Turn]:
    """Return the cached ones of the last turns; raise errors.Unavailable when Redis is unavailable."""
    with redis_client.failures_as_unavailable():
        members = await resources.redis.zrange(key(resources, tenant, session_id), -count, -1)
    return [_unpack(str(member)) for member in members]


async def load_turns(
    resources: Resources, session: Session, count: int, cached_turns: list[Turn] | None
) -> list[Turn]:
    """Return the last turns of a session, oldest first, from the cache if it is complete, else from Postgres.

    `cached_turns` is the result of `read_cache`, or None if Redis was unavailable. A session that
    was idle for too long has no turns.
    """
    if session.window_expired:
        return []
    expected_count = min(count, session.last_seq)
    if cached_turns is not None and _is_complete(cached_turns, session.last_seq, expected_count):
        return cached_turns
    max_turns = resources.settings.window_max_turns
    async with resources.postgres.for_tenant(session.tenant) as connection:
        turns = await queries.list_last(connection, session.tenant, session.id, max_turns)
    if cached_turns is not None and turns:
        await push(resources, session, turns)
    return turns[-count:]


def _is_complete(cached_turns: list[Turn], last_seq: int, expected_count: int) -> bool:
    expected_seqs = list(range(last_seq - expected_count + 1, last_seq + 1))
    return [turn.seq for turn in cached_turns] == expected_seqs


async def push(resources: Resources, session: Session, turns: list[Turn]) -> None:
    """Add turns to the window. If Redis is unavailable, the next reader rebuilds the window."""
    settings = resources.settings
    name = key(resources, session.tenant, session.id)
    try:
        with redis_client.failures_as_unavailable():
            async with resources.redis.pipeline(transaction=True) as pipe:
                pipe.zadd(name, {_pack(turn): turn.seq for turn in turns[-settings.window_max_turns :]})
                pipe.zremrangebyrank(name, 0, -settings.window_max_turns - 1)
                pipe.expire(name, settings.window_ttl)
                await pipe.execute()
    except errors.Unavailable as error:
        log.warning("window_not_updated", session_id=session.id, reason=str(error))


async def delete(resources: Resources, tenant: str, session_ids: Sequence[str]) -> None:
    """Delete windows whose text has been deleted. Raise errors.Unavailable if Redis is unavailable."""
    with redis_client.failures_as_unavailable():
        await resources.redis.delete(*(key(resources, tenant, session_id) for session_id in session_ids))


def _pack(turn: Turn) -> bytes:
    recalled_lines = [line.model_dump() for line in turn.recalled_lines]
    return orjson.dumps(turn.model_dump(mode="json") | {"recalled_lines": recalled_lines})


def _unpack(member: str) -> Turn:
    return Turn.model_validate(orjson.loads(member))
