"""Build the context of a turn: gather inputs concurrently, assemble them, record the turn.

No transaction is open while the index or a model is called. The turn is recorded while the session's
row is locked. If another turn was recorded since the inputs were gathered, the conversation is read
again under the lock, so that exactly those memories are withheld that `messages` shows. What was deleted
since is left out (`recheck`).
"""

import time
from dataclasses import replace
from typing import Any

from shared.context import assemble, blocks, queries, recheck
from shared.context.gather import gather
from shared.context.queries import SessionInputs
from shared.context.request import ContextOptions, Request
from shared.context.types import (
    FIRST_BLOCKS,
    STORED_BLOCKS,
    WORKING_BLOCKS,
    Block,
    BlockKind,
    BuiltContext,
    ContextInputs,
)
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import append, window_start
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import SkillPart, TurnDraft, turn_key_of
from shared.foundation.roles import Role
from shared.foundation.scope import Caller
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.memory.pinned import queries as pinned_queries
from shared.memory.skills import use_queries
from shared.memory.skills.use_queries import UsedBy
from shared.memory.working import keys
from shared.platform.idempotency.idempotent import IdempotencyKey, find_stored, idempotent
from shared.platform.resources import Resources

JsonObject = dict[str, Any]


async def build_context(
    resources: Resources, caller: Caller, session_id: str, request: Request, key: IdempotencyKey | None = None
) -> JsonObject:
    """Return {messages, blocks, recalled, first_turn, tokens, stages, degraded, seq, explain?}.

    Without `record_turn` nothing is recorded, and there is no `seq`. If a request with this `key` was done
    before, its stored response is returned, after its turn is written through if it was left unindexed.
    Raises errors.NotFound if the caller sees no such session.
    """
    started = time.perf_counter()
    async with resources.transaction(caller.tenant) as tx:
        stored_response = await find_stored(tx, key)
        if stored_response is not None:
            append.index_repeated(tx, session_id, [stored_response])
        else:
            session = await get_session(tx, resources.settings, caller, session_id)
            found = await queries.read_session_inputs(tx, session)
    if stored_response is not None:
        return dict(stored_response)
    options = request.options.or_else(caller, ContextOptions.from_json(found.options))
    request = replace(request, options=options)
    inputs = await gather(resources, session, found, request)
    inputs.core = blocks.core(found.core_texts)
    _add_summary(resources, inputs, found)
    if not request.record_turn:
        context = assemble.assemble(inputs, request)
        return _to_response(request, inputs, context, started)
    try:
        return await _record(resources, caller, session, inputs, request, key, started)
    except _IsFirstNow:
        return await build_context(resources, caller, session_id, request, key)


class _IsFirstNow(Exception):
    """All turns were deleted since the context was gathered, so it lacks what a first turn may show."""


@repeated_after_deadlock
async def _record(
    resources: Resources,
    caller: Caller,
    gathered_session: Session,
    inputs: ContextInputs,
    request: Request,
    key: IdempotencyKey | None,
    started: float,
) -> JsonObject:
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as idempotent_request:
        if idempotent_request.stored is not None:
            append.index_repeated(tx, gathered_session.id, [idempotent_request.stored])
            return dict(idempotent_request.stored)
        await recheck.lock_sessions(tx, gathered_session, inputs)
        session = await get_session(tx, resources.settings, caller, gathered_session.id, lock=True)
        if session.log_state != gathered_session.log_state:
            await _reload_turns(resources, tx, session, inputs)
        expires_at = None
        if key is not None:
            expires_at = await recheck.leave_out_deleted_entries(resources, tx, session, inputs)
        await recheck.leave_out_deleted(tx, session, inputs)
        has_budget = request.max_tokens is not None
        await recheck.leave_out_deleted_skills(
            tx, inputs, lock_replayed=key is not None, has_budget=has_budget
        )
        if key is not None:
            inputs.core = blocks.core(await pinned_queries.lock_core(tx, session.scope))
            await recheck.leave_out_deleted_triples(tx, inputs)
        context = assemble.assemble(inputs, request)
        # The agent waits for its answer now, and nobody searches for this turn before the session's next one.
        draft = _to_draft(request, context)
        origins = [draft.origin(caller)]
        turns = await append.insert_turns(tx, resources, session, [draft], origins, wait=False)
        versions = {result.memory.id: result.memory.content_version for result in context.new_memories}
        await turn_queries.save_recalled(tx, session, turns[0].seq, versions)
        shown_ids = [line.id for line in context.lines if line.skill_part is SkillPart.CONTENT]
        await use_queries.note_use(tx, shown_ids, session.id, UsedBy.CONTEXT)
        await append.notify_dreams(tx, resources.settings, session, turns)
        response = _to_response(request, inputs, context, started) | {"seq": turns[0].seq}
        ids = [] if key is None else _ids_in_response(inputs, context)
        record_ids = [session.id, turns[0].record_id, *ids]
        await idempotent_request.store(
            response, record_ids=record_ids, user_id=session.user_id, expires_at=expires_at
        )
        return response


async def _reload_turns(
    resources: Resources, tx: Transaction, session: Session, inputs: ContextInputs
) -> None:
    is_first = session.turn_count == 0
    if is_first and not inputs.first_turn and not inputs.results:
        raise _IsFirstNow
    inputs.first_turn = is_first
    count = window_start.max_replayed(resources.settings, session)
    turns = await turn_queries.list_last(tx, session.id, count)
    inputs.turns = window_start.within(session, turns)
    found = await queries.read_session_inputs(tx, session)
    inputs.recalled_before = found.recalled_before
    _add_summary(resources, inputs, found)


def _add_summary(resources: Resources, inputs: ContextInputs, found: SessionInputs) -> None:
    inputs.summary = blocks.summary(found.summary)
    inputs.lacks_summary = found.has_unsummarized_turns and resources.language_model is not None


def _to_draft(request: Request, context: BuiltContext) -> TurnDraft:
    return TurnDraft(role=Role.USER, content=request.message, recalled=context.lines)


def _ids_in_response(inputs: ContextInputs, context: BuiltContext) -> list[str]:
    """Return the ids of the records whose text the response repeats: deleting one erases the response."""
    replayed = {line.id for turn in inputs.turns for line in turn.recalled_lines}
    replayed |= {turn.record_id for turn in inputs.turns}
    shown = {record_id for block in context.blocks for record_id in _shown_records(block)}
    return sorted(replayed | shown)


def _shown_records(block: Block) -> set[str]:
    line_ids = {line.record_id for line in block.lines}
    if block.kind is BlockKind.PAST_TURNS:
        return line_ids | {turn_key_of(record_id)[0] for record_id in line_ids}
    if block.kind in WORKING_BLOCKS:
        return {keys.parse_view(key).base for key in line_ids}
    return line_ids


def _to_response(
    request: Request, inputs: ContextInputs, context: BuiltContext, started: float
) -> JsonObject:
    response: JsonObject = {
        "messages": context.messages,
        "blocks": [
            {
                "kind": block.kind,
                "text": blocks.text(block),
                "ids": [line.record_id for line in block.lines],
                "stability": _stability(block, request),
            }
            for block in context.blocks
        ],
        "recalled": [
            result.memory.model_dump(mode="json") | {"score": result.scored.score}
            for result in context.new_memories
        ],
        "first_turn": inputs.first_turn,
        "tokens": context.tokens,
        "stages": inputs.stages,
        "degraded": [*inputs.degraded, "summary"] if inputs.lacks_summary else inputs.degraded,
    }
    return response | {"explain": _explain(inputs, context, started)} if request.explain else response


def _stability(block: Block, request: Request) -> str:
    """Return whether the next context has this block in the same place."""
    is_stored = request.record_turn and block.kind in STORED_BLOCKS
    return "stable" if is_stored or block.kind in FIRST_BLOCKS else "volatile"


def _explain(inputs: ContextInputs, context: BuiltContext, started: float) -> JsonObject:
    total_ms = round((time.perf_counter() - started) * 1000, 2)
    return {
        "scores": {result.memory.id: result.scored.scores for result in inputs.results},
        "withheld": context.withheld,
        "shortened": context.shortened,
        "timings_ms": inputs.timings_ms | {"total": total_ms},
        "token_rule": "one per four bytes of UTF-8, four per message",
    }
