"""Build the context of a turn: read side by side, shape by pure functions, record in one transaction.

No transaction is open while the index or a model is asked. The turn is recorded under the
session row's lock; if another turn slipped in between, the conversation is read again there, so
that what is withheld is exactly what `messages` shows.
"""

import time
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.context import assemble, blocks
from shared.context.gather import gather
from shared.context.types import BuiltContext, ContextInputs, Request
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import append
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn, TurnDraft
from shared.foundation.roles import Role
from shared.foundation.scope import Caller
from shared.jobs.job import Job
from shared.platform.idempotency.queries import IdempotencyKey, find_stored, idempotent
from shared.platform.resources import Resources

Answer = dict[str, Any]


async def build_context(
    resources: Resources, caller: Caller, session_id: str, request: Request, key: IdempotencyKey | None = None
) -> Answer:
    """Return {messages, blocks, recalled, first_turn, tokens, stages, degraded, seq, explain?}."""
    started = time.perf_counter()
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        stored = await find_stored(connection, caller.tenant, key)
        if stored is not None:
            return dict(stored)
        session = await _session(resources, connection, caller, session_id)
        marks = await _marks(resources, connection, session)
    gathered = await gather(resources, session, marks, request)
    if not request.record_turn:
        shaped = assemble.assemble(_before_message(gathered, request.message), request)
        return _answer(request, gathered, shaped, started)
    answer, session, turns, claims = await _record(
        resources, caller, session, gathered, request, key, started
    )
    if turns:
        await append.cache_and_index(resources, session, turns, claims)
    return answer


async def _session(
    resources: Resources, connection: AsyncConnection, caller: Caller, session_id: str, *, lock: bool = False
) -> Session:
    idle = resources.settings.window_ttl
    return await get_session(connection, caller, session_id, idle, lock=lock)


async def _marks(
    resources: Resources, connection: AsyncConnection, session: Session
) -> dict[str, tuple[int, int]]:
    """Return what the turns that can be replayed have shown: an older mark withholds nothing."""
    oldest = session.last_seq - resources.settings.context_max_turns
    return await turn_queries.list_recalled(connection, session.tenant, session.id, oldest)


def _before_message(gathered: ContextInputs, message: str) -> ContextInputs:
    """Leave out the current message where the caller has already reported it as a turn."""
    if gathered.turns and _says(gathered.turns[-1], message):
        gathered.turns = gathered.turns[:-1]
        gathered.first_turn = not gathered.turns
    return gathered


def _says(turn: Turn, message: str) -> bool:
    return turn.role is Role.USER and turn.content == message


async def _record(
    resources: Resources,
    caller: Caller,
    seen: Session,
    gathered: ContextInputs,
    request: Request,
    key: IdempotencyKey | None,
    started: float,
) -> tuple[Answer, Session, list[Turn], list[Job]]:
    async with (
        resources.postgres.for_tenant(caller.tenant) as connection,
        idempotent(connection, caller.tenant, key) as keyed,
    ):
        if keyed.stored is not None:
            return dict(keyed.stored), seen, [], []
        session = await _session(resources, connection, caller, seen.id, lock=True)
        if session.last_seq != seen.last_seq:
            await _catch_up(resources, connection, session, gathered)
        shaped = assemble.assemble(gathered, request)
        turns, claims = await append.insert_turns(connection, session, [_turn(request, shaped)])
        await append.notify_dreams(connection, resources.settings, session, turns)
        shown = {one.memory.id: one.memory.content_version for one in shaped.new_memories}
        await turn_queries.save_recalled(connection, session, turns[0].seq, shown)
        answer = _answer(request, gathered, shaped, started) | {"seq": turns[0].seq}
        record_ids = [session.id, *_repeated(shaped, gathered)]
        await keyed.store(answer, record_ids=record_ids, user_id=session.user_id)
    return answer, session, turns, claims


async def _catch_up(
    resources: Resources, connection: AsyncConnection, session: Session, gathered: ContextInputs
) -> None:
    count = resources.settings.context_max_turns
    gathered.turns = await turn_queries.list_last(connection, session.tenant, session.id, count)
    gathered.recalled_before = await _marks(resources, connection, session)
    gathered.first_turn = False


def _turn(request: Request, shaped: BuiltContext) -> TurnDraft:
    return TurnDraft(role=Role.USER, content=request.message, recalled=shaped.lines)


def _repeated(shaped: BuiltContext, gathered: ContextInputs) -> list[str]:
    """Return the entries whose text the answer repeats, so that forgetting them blanks it."""
    replayed = [line.id for turn in gathered.turns for line in turn.recalled_lines]
    return sorted({*replayed, *(one.memory.id for one in shaped.new_memories)})


def _answer(request: Request, gathered: ContextInputs, shaped: BuiltContext, started: float) -> Answer:
    answer: Answer = {
        "messages": shaped.messages,
        "blocks": [
            {"kind": block.kind, "text": blocks.text(block), "ids": [line.record_id for line in block.lines]}
            for block in shaped.blocks
        ],
        "recalled": [
            one.memory.model_dump(mode="json") | {"score": one.scored.score} for one in shaped.new_memories
        ],
        "first_turn": gathered.first_turn,
        "tokens": shaped.tokens,
        "stages": gathered.stages,
        "degraded": gathered.degraded,
    }
    return answer | {"explain": _explained(gathered, shaped, started)} if request.explain else answer


def _explained(gathered: ContextInputs, shaped: BuiltContext, started: float) -> Answer:
    return {
        "scores": {one.memory.id: one.scored.scores for one in gathered.found},
        "withheld": shaped.withheld,
        "shortened": shaped.shortened,
        "timings_ms": gathered.timings | {"total": round((time.perf_counter() - started) * 1000, 2)},
        "token_rule": "one per four bytes of UTF-8, four per message",
    }
