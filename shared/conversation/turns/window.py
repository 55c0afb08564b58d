"""Read a session's conversation."""

import orjson
import structlog

from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import queries
from shared.conversation.turns.turn import Turn
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra import redis as redis_client
from shared.platform.resources import Resources


async def read_window(resources: Resources, caller: Caller, session_id: str, count: int) -> list[Turn]:
    """Return the window of a session: its last turns, none when it has lain idle too long."""
    settings = resources.settings
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        session = await get_session(connection, caller, session_id, settings.window_ttl)
    count = min(count, settings.window_max_turns)
    try:
        held = await read_cache(resources, session.tenant, session.id, count)
    except errors.Unavailable:
        held = None
    return await load_turns(resources, session, count, held)


log = structlog.get_logger()


def key(resources: Resources, tenant: str, session_id: str) -> str:
    """Return the Redis key of a session's window."""
    return f"{resources.settings.prefix}:window:{{{tenant}:{session_id}}}"


async def push(resources: Resources, session: Session, turns: list[Turn]) -> None:
    """Add turns to the window; a window that misses them is rebuilt by its next reader."""
    settings = resources.settings
    name = key(resources, session.tenant, session.id)
    try:
        with redis_client.failures_as_unavailable():
            async with resources.redis.pipeline(transaction=True) as pipe:
                pipe.zadd(name, {_packed(turn): turn.seq for turn in turns[-settings.window_max_turns :]})
                pipe.zremrangebyrank(name, 0, -settings.window_max_turns - 1)
                pipe.expire(name, settings.window_ttl)
                await pipe.execute()
    except errors.Unavailable as error:
        log.warning("window_not_updated", session_id=session.id, reason=str(error))


async def read_cache(resources: Resources, tenant: str, session_id: str, count: int) -> list[Turn]:
    """Return what the window holds of the last turns; raise errors.Unavailable when Redis is away."""
    with redis_client.failures_as_unavailable():
        members = await resources.redis.zrange(key(resources, tenant, session_id), -count, -1)
    return [_unpacked(str(member)) for member in members]


async def load_turns(
    resources: Resources, session: Session, count: int, held: list[Turn] | None
) -> list[Turn]:
    """Return a session's last turns, oldest first: from the window if it is whole, else from the log.

    `held` is what `cached` returned, None if Redis was away. A session idle for too long has none.
    """
    if session.window_expired or session.last_seq == 0:
        return []
    expected = min(count, session.last_seq)
    if held is not None and _whole(held, session.last_seq, expected):
        return held
    async with resources.postgres.for_tenant(session.tenant) as connection:
        turns = await queries.list_last(
            connection, session.tenant, session.id, resources.settings.window_max_turns
        )
    if held is not None and turns:
        await push(resources, session, turns)
    return turns[-count:]


def _whole(held: list[Turn], last_seq: int, expected: int) -> bool:
    return [turn.seq for turn in held] == list(range(last_seq - expected + 1, last_seq + 1))


async def delete(resources: Resources, tenant: str, session_ids: list[str]) -> None:
    """Drop windows whose text has been erased.

    Redis being away does no harm: a line is replayed only while its mark stands in Postgres.
    """
    if not session_ids:
        return
    try:
        with redis_client.failures_as_unavailable():
            await resources.redis.delete(*(key(resources, tenant, one) for one in session_ids))
    except errors.Unavailable as error:
        log.warning("windows_not_deleted", sessions=len(session_ids), reason=str(error))


def _packed(turn: Turn) -> bytes:
    recalled = [line.model_dump() for line in turn.recalled_lines]
    return orjson.dumps(turn.model_dump(mode="json") | {"recalled_lines": recalled})


def _unpacked(member: str) -> Turn:
    return Turn.model_validate(orjson.loads(member))
