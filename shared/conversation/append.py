"""Append turns: ordered under the session row's lock, durable, found by keyword at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncConnection

from shared import batch
from shared.batch import Answer
from shared.config import Settings
from shared.conversation import document, store, window
from shared.conversation.record import Turn, TurnDraft
from shared.dreams import begin as dreams
from shared.feedback import signal
from shared.idempotency.store import RequestKey, idempotent
from shared.index.writer import HEAD_START
from shared.resources import Resources
from shared.scope import Caller
from shared.sessions import open as sessions
from shared.sessions import store as session_store
from shared.sessions.record import Session
from shared.spend import book
from shared.spend.record import Reported, of_turn
from shared.stages import Kind
from shared.work import store as work
from shared.work.store import Claim


async def append(
    resources: Resources,
    caller: Caller,
    session_id: str,
    drafts: Sequence[TurnDraft],
    key: RequestKey | None = None,
    refused: Mapping[int, Answer] | None = None,
) -> list[Answer]:
    """Append checked turns and return {seq} for each, with the `refused` answers in their places."""
    async with (
        resources.postgres.tenant(caller.tenant) as connection,
        idempotent(connection, caller.tenant, key) as request,
    ):
        if request.stored is not None:
            return list(request.stored)
        idle = resources.settings.window_idle
        session = await sessions.find(connection, caller, session_id, idle, lock=True)
        turns, claims = await record(connection, session, drafts)
        await notice(connection, resources.settings, session, turns)
        await book.accumulate(connection, resources.settings, session, _used(turns, drafts))
        answer = batch.placed([{"seq": turn.seq} for turn in turns], refused or {})
        await request.store(answer, record_ids=[session_id], user_id=session.user_id)
    await publish(resources, session, turns, claims)
    return answer


def _used(turns: Sequence[Turn], drafts: Sequence[TurnDraft]) -> list[Reported]:
    """Return what turns say of the calls that made them, named by the turn where they have no id."""
    pairs = [(turn, draft.usage) for turn, draft in zip(turns, drafts, strict=True)]
    return [replace(used, usage_id=used.usage_id or of_turn(turn.seq)) for turn, used in pairs if used]


async def record(
    connection: AsyncConnection, session: Session, drafts: Sequence[TurnDraft]
) -> tuple[list[Turn], list[Claim]]:
    """Number and store turns of a locked session; return them and the index rows to write through."""
    if not drafts:
        return [], []
    first = await session_store.take_seqs(connection, session, len(drafts))
    turns = await store.add(connection, session, first, drafts)
    versions = {turn.ref: store.VERSION for turn in turns}
    claims = await work.enqueue_index(connection, session.tenant, Kind.TURN, versions, delay=HEAD_START)
    return turns, claims


async def notice(
    connection: AsyncConnection, settings: Settings, session: Session, turns: Sequence[Turn]
) -> None:
    """Let dreams know: the scope is active, and where its user corrected the agent."""
    if not turns:
        return
    await dreams.note_activity(connection, settings, session.scope)
    await signal.note_corrections(connection, session, turns)


async def publish(resources: Resources, session: Session, turns: list[Turn], claims: list[Claim]) -> None:
    """Show stored turns to the window and to search; neither can fail the turn."""
    if not turns:
        return
    await window.push(resources, session, turns)
    documents = [document.document(session.scope, turn) for turn in turns]
    await resources.writer.write_through(documents, claims)
