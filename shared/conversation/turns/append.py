"""Append turns to a session.

The lock of the session's row orders concurrent writers. Turns are durable and found by keyword at
once; embeddings follow later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from shared.conversation.feedback import detect
from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.report import UserText
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions import usage as session_usage
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session, SessionKind
from shared.conversation.turns import index_document, queries, window, window_start
from shared.conversation.turns.turn import Turn, TurnDraft, record_id_of
from shared.foundation import batch_results
from shared.foundation.batch_results import JsonObject
from shared.foundation.config import Settings
from shared.foundation.origin import Origin, Trust
from shared.foundation.roles import Role
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.infra.postgres_failures import repeated_after_deadlock
from shared.infra.transaction import Transaction
from shared.jobs import dream_schedule, mining_schedule
from shared.platform.auth import rights
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.platform.spend.charge import ReportedUsage, turn_usage_id
from shared.records.transaction import RecordTransaction


async def append(
    resources: Resources,
    caller: Caller,
    session_id: str,
    drafts: Sequence[TurnDraft],
    key: IdempotencyKey | None = None,
    rejected: Mapping[int, JsonObject] | None = None,
) -> list[JsonObject]:
    """Append validated turns and return {seq, version} for each.

    `rejected` are the error responses of invalid turns by their positions in the request; they are
    merged into the result. Raises errors.NotFound for an unknown session, and errors.Conflict for a
    usage id that exists with other numbers; errors.Forbidden for a turn of the system by a key that may not
    speak for it; errors.Invalid for a turn that asks for more trust than it has.
    """
    for draft in drafts:
        check_draft(caller, draft)
    return await _commit(resources, caller, session_id, drafts, key, rejected or {})


def check_draft(caller: Caller, draft: TurnDraft) -> None:
    """Raise errors.Forbidden or errors.Invalid if the key may not report this turn, or not so trusted."""
    rights.require_voice(caller, draft.role, draft.speaker)
    draft.origin(caller)


@repeated_after_deadlock
async def _commit(
    resources: Resources,
    caller: Caller,
    session_id: str,
    drafts: Sequence[TurnDraft],
    key: IdempotencyKey | None,
    rejected: Mapping[int, JsonObject],
) -> list[JsonObject]:
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as request:
        stored: list[JsonObject] | None = request.stored
        if stored is not None:
            index_repeated(tx, session_id, stored)
            return stored
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        origins = [draft.origin(caller) for draft in drafts]
        turns = await insert_turns(tx, resources, session, drafts, origins)
        usages = _reported_usages(turns, drafts)
        await session_usage.record_usage(tx, resources.settings, session, usages)
        await notify_dreams(tx, resources.settings, session, turns)
        appended = [{"seq": turn.seq, "version": turn.version} for turn in turns]
        response = batch_results.merge_results(appended, rejected)
        await request.store(response, record_ids=[session_id], user_id=session.user_id)
        return response


def index_repeated(tx: RecordTransaction, session_id: str, responses: Sequence[JsonObject]) -> None:
    """Index the turns that the first try of a repeated request left unindexed."""
    record_ids = [record_id_of(session_id, response["seq"]) for response in responses if "seq" in response]
    tx.index_repeated(RecordKind.TURN, record_ids, index_document.load_documents)


def _reported_usages(turns: Sequence[Turn], drafts: Sequence[TurnDraft]) -> list[ReportedUsage]:
    """Return the usages reported with turns. A usage without an id gets one from its turn's number."""
    return [
        replace(draft.usage, usage_id=draft.usage.usage_id or turn_usage_id(turn.seq))
        for turn, draft in zip(turns, drafts, strict=True)
        if draft.usage
    ]


async def insert_turns(
    tx: RecordTransaction,
    resources: Resources,
    session: Session,
    drafts: Sequence[TurnDraft],
    origins: Sequence[Origin],
    *,
    is_activity: bool = True,
    wait: bool = True,
) -> list[Turn]:
    """Store turns of a locked session with their origins under new numbers, and return them.

    If they fill the window of its contexts, the window's start moves. Turns of an imported log are no
    activity: nobody looks whether the session becomes idle. After the commit they are added to the cached
    window and to the index; without `wait`, nobody waits for the latter.
    """
    if not drafts:
        return []
    first_seq = await session_queries.reserve_seqs(tx, session, len(drafts))
    turns = await queries.insert_rows(tx, session, first_seq, drafts, origins)
    await window_start.move(tx, resources.settings, session, turns, is_activity=is_activity)
    await tx.index([index_document.document(session.scope, turn) for turn in turns], wait=wait)
    tx.after_commit(partial(window.push, resources, session, turns, after=session.turn_count))
    return turns


async def notify_dreams(tx: Transaction, settings: Settings, session: Session, turns: Sequence[Turn]) -> None:
    """Schedule what reads new turns of the session's scope, and store a signal for each correction."""
    if not turns:
        return
    await dream_schedule.schedule_dream(tx, settings, session.scope)
    await dream_schedule.schedule_evaluation(tx, settings, session.scope)
    if session.kind is SessionKind.SESSION:
        await mining_schedule.count_turns(tx, settings, session.scope, len(turns))
    await feedback_report.note_corrections(tx, session, await _user_texts(tx, session, turns))


async def _user_texts(tx: Transaction, session: Session, turns: Sequence[Turn]) -> list[UserText]:
    """Return the texts of the user's turns, each with the assistant's text before it where that matters."""
    texts: list[UserText] = []
    for position, turn in enumerate(turns):
        if turn.role is not Role.USER or turn.origin.trust < Trust.USER:
            continue
        text = UserText(turn.seq, turn.content)
        if position:
            before = turns[position - 1]
            if before.role is Role.ASSISTANT:
                text = text._replace(previous=before.content, previous_seq=before.seq)
        elif turn.seq > 1:
            text = await _with_stored_previous(tx, session, text)
        texts.append(text)
    return texts


async def _with_stored_previous(tx: Transaction, session: Session, text: UserText) -> UserText:
    """Return a user's text with the assistant's before it, or with its likelihood if that doesn't matter."""
    own_score = detect.score(text.content)
    if detect.needs_previous(text.content, own_score):
        found = await queries.assistant_text_before(tx, session, text.seq)
        if found is not None:
            return text._replace(previous_seq=found[0], previous=found[1])
    return text._replace(likelihood=own_score)
