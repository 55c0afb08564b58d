"""Import a log of turns into sessions, each turn once.

What makes a turn the same is its session, role, words and time. That is looked up under the
session's lock, not remembered as a request: the log of a running agent grows, and a request's key
is forgotten after a day. Turns are numbered as they come in; their times tell when they were said.

A session keeps its id if that is free here or is this scope's own session already. Otherwise, and
where the id can't be one here, it gets an id that follows from it, which the report names.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.sessions.open import get_session, open_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import append
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.table import turn
from shared.conversation.turns.turn import Turn, TurnDraft
from shared.foundation import errors, validation
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres import tenant_filter
from shared.lifecycle.transfer import rockbot
from shared.lifecycle.transfer.rockbot import ImportedTurn
from shared.platform.resources import Resources

_BATCH = 500
_Key = tuple[str, str, datetime | None]


@dataclass(slots=True)
class _Intake:
    """An import under way."""

    resources: Resources
    caller: Caller
    scope: Scope
    sessions: dict[str, str] = field(default_factory=dict)
    created: int = 0
    skipped: int = 0


async def import_turns(resources: Resources, caller: Caller, scope: Scope, file: Path) -> dict[str, Any]:
    """Append what a log holds and the sessions lack; return the report.

    It reads {"created", "skipped", "remapped": {session: its id here}, "malformed": [{"line", "rule"}]}.
    """
    under_way, malformed = _Intake(resources, caller, scope), list[dict[str, Any]]()
    for session_id, drafts in _grouped(rockbot.read_turns(file, malformed)):
        await _append(under_way, session_id, drafts)
    return {
        "created": under_way.created,
        "skipped": under_way.skipped,
        "remapped": {told: here for told, here in under_way.sessions.items() if told != here},
        "malformed": malformed,
    }


def _grouped(turns: Iterator[ImportedTurn]) -> Iterator[tuple[str, list[TurnDraft]]]:
    """Read some turns at a time and group them by session, in their order."""
    while some := list(islice(turns, _BATCH)):
        groups: dict[str, list[TurnDraft]] = {}
        for said in some:
            groups.setdefault(said.session_id, []).append(said.draft)
        yield from groups.items()


async def _append(under_way: _Intake, told: str, drafts: Sequence[TurnDraft]) -> None:
    resources, caller = under_way.resources, under_way.caller
    if told not in under_way.sessions:
        under_way.sessions[told] = await _opened(resources, caller, under_way.scope, told)
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        idle, here = resources.settings.window_ttl, under_way.sessions[told]
        session = await get_session(connection, caller, here, idle, lock=True)
        fresh = await _unknown(connection, session, drafts)
        turns, claims = await append.insert_turns(connection, session, fresh)
    await append.cache_and_index(resources, session, turns, claims)
    under_way.created += len(fresh)
    under_way.skipped += len(drafts) - len(fresh)


async def _opened(resources: Resources, caller: Caller, scope: Scope, told: str) -> str:
    for session_id in _candidates(scope, told):
        try:
            await open_session(resources, caller, scope, session_id=session_id)
        except errors.Conflict:
            continue
        return session_id
    raise errors.Conflict(f"no id is free for the session '{told}'")


def _candidates(scope: Scope, told: str) -> Iterator[str]:
    with suppress(errors.Invalid):
        yield validation.check_identifier(told, "session_id")
    name = "\x1f".join((scope.agent_id, scope.user_id or "", told))
    yield f"imported/{hashlib.sha256(name.encode()).hexdigest()[:24]}"


async def _unknown(
    connection: AsyncConnection, session: Session, drafts: Sequence[TurnDraft]
) -> list[TurnDraft]:
    """Return the turns that a locked session lacks, each once."""
    moments = {draft.created_at for draft in drafts}
    mine = (tenant_filter(turn, session.tenant), turn.c.session_id == session.id)
    statement = select(turn).where(*mine, turn.c.created_at.in_(moments))
    known = set(_keys(await turn_queries.select_turns(connection, statement)))
    fresh = {key: draft for key, draft in zip(_keys(drafts), drafts, strict=True) if key not in known}
    return list(fresh.values())


def _keys(said: Iterable[Turn | TurnDraft]) -> list[_Key]:
    return [(one.role, one.content, one.created_at) for one in said]
