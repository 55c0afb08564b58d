"""Append turns: ordered under the session row's lock, durable, found by keyword at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.conversation.feedback import report as feedback_report
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions import usage as session_usage
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import index_document, queries, window
from shared.conversation.turns.turn import Turn, TurnDraft
from shared.foundation import batch_results
from shared.foundation.batch_results import JsonObject
from shared.foundation.config import Settings
from shared.foundation.roles import Role
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.jobs import dream_schedule, index_jobs
from shared.jobs.job import Job
from shared.platform.idempotency.queries import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.platform.spend.charge import ReportedUsage, turn_usage_id
from shared.search.index.writer import WRITE_THROUGH_SECONDS


async def append(
    resources: Resources,
    caller: Caller,
    session_id: str,
    drafts: Sequence[TurnDraft],
    key: IdempotencyKey | None = None,
    refused: Mapping[int, JsonObject] | None = None,
) -> list[JsonObject]:
    """Append checked turns and return {seq} for each, with the `refused` answers in their places."""
    async with (
        resources.postgres.for_tenant(caller.tenant) as connection,
        idempotent(connection, caller.tenant, key) as request,
    ):
        if request.stored is not None:
            return list(request.stored)
        idle = resources.settings.window_ttl
        session = await get_session(connection, caller, session_id, idle, lock=True)
        turns, claims = await insert_turns(connection, session, drafts)
        await notify_dreams(connection, resources.settings, session, turns)
        await session_usage.record_usage(connection, resources.settings, session, _used(turns, drafts))
        answer = batch_results.merge_results([{"seq": turn.seq} for turn in turns], refused or {})
        await request.store(answer, record_ids=[session_id], user_id=session.user_id)
    await cache_and_index(resources, session, turns, claims)
    return answer


def _used(turns: Sequence[Turn], drafts: Sequence[TurnDraft]) -> list[ReportedUsage]:
    """Return what turns say of the calls that made them, named by the turn where they have no id."""
    pairs = [(turn, draft.usage) for turn, draft in zip(turns, drafts, strict=True)]
    return [replace(used, usage_id=used.usage_id or turn_usage_id(turn.seq)) for turn, used in pairs if used]


async def insert_turns(
    connection: AsyncConnection, session: Session, drafts: Sequence[TurnDraft]
) -> tuple[list[Turn], list[Job]]:
    """Number and store turns of a locked session; return them and the index rows to write through."""
    if not drafts:
        return [], []
    first = await session_queries.reserve_seqs(connection, session, len(drafts))
    turns = await queries.insert_rows(connection, session, first, drafts)
    versions = {turn.record_id: queries.VERSION for turn in turns}
    claims = await index_jobs.enqueue_index_jobs(
        connection, session.tenant, RecordKind.TURN, versions, delay=WRITE_THROUGH_SECONDS
    )
    return turns, claims


async def notify_dreams(
    connection: AsyncConnection, settings: Settings, session: Session, turns: Sequence[Turn]
) -> None:
    """Let dreams know: the scope is active, and where its user corrected the agent."""
    if not turns:
        return
    await dream_schedule.schedule_dream(connection, settings, session.scope)
    await feedback_report.note_corrections(
        connection, session, [turn.content for turn in turns if turn.role is Role.USER]
    )


async def cache_and_index(
    resources: Resources, session: Session, turns: list[Turn], claims: list[Job]
) -> None:
    """Show stored turns to the window and to search; neither can fail the turn."""
    if not turns:
        return
    await window.push(resources, session, turns)
    documents = [index_document.document(session.scope, turn) for turn in turns]
    await resources.index_writer.write_through(documents, claims)
