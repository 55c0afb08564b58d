"""Delete turns of sessions that stay: single ones, the last one, all, or those past their retention."""

from collections import Counter
from collections.abc import Collection, Sequence

from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import log, log_queries
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn, log_id_of, turn_key_of
from shared.foundation.content import Subject
from shared.foundation.scope import Caller
from shared.foundation.stages import RecordKind
from shared.lifecycle import deletion, removal, withdrawal
from shared.lifecycle.deletion import Deletion
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction
from shared.search.index import embedding_cache


async def delete_turn(
    resources: Resources, caller: Caller, session_id: str, seq: int, expected: Collection[int] | None
) -> bool:
    """Delete a turn, if it has an expected version; return whether there was one.

    Raises errors.NotFound for a session that the caller may not see, and errors.PreconditionFailed if the
    turn has another version, or is not there although a version is expected.
    """
    async with resources.transaction(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        turn = await log_queries.get(tx, session.id, seq)
        log.check_version(seq, turn, expected)
        if turn is None:
            return False
        await _withdraw(tx, resources, caller, session, [seq])
    return True


async def clear_turns(resources: Resources, caller: Caller, session_id: str) -> int:
    """Delete all turns of a session, and return how many there were. Their numbers are not used again.

    Raises errors.NotFound for a session that the caller may not see.
    """
    async with resources.transaction(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        record_ids = await turn_queries.list_record_ids(tx, [session.id])
        seqs = [turn_key_of(record_id)[1] for record_id in record_ids]
        await _withdraw(tx, resources, caller, session, seqs, is_clear=True)
    return len(record_ids)


async def pop_turn(
    resources: Resources, caller: Caller, session_id: str, key: IdempotencyKey | None
) -> Turn | None:
    """Delete the last turn of a session, once per idempotency key, and return it; None if there is none.

    Raises errors.NotFound for a session that the caller may not see.
    """
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            packed = request.stored["turn"]
            return None if packed is None else Turn.unpack(packed)
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        end = await log_queries.list_end(tx, session.id, 1)
        turn = next(iter(end.turns), None)
        if turn is not None:
            await _withdraw(tx, resources, caller, session, [turn.seq])
        # The response shows a turn that is gone. It goes with the session, and when all turns are deleted.
        record_ids = [session.id, log_id_of(session.id)]
        response = {"turn": None if turn is None else turn.pack()}
        await request.store(response, record_ids=record_ids, user_id=session.user_id)
    return turn


async def _withdraw(
    tx: RecordTransaction,
    resources: Resources,
    caller: Caller,
    session: Session,
    seqs: Sequence[int],
    *,
    is_clear: bool = False,
) -> None:
    withdrawn = await withdrawal.collect(tx, session, seqs, caller.key_id)
    withdrawal.add_turns(withdrawn)
    if is_clear:
        withdrawn.rows.subjects[Subject.LOG] = [log_id_of(session.id)]
    await withdrawal.carry_out(tx, resources, withdrawn)


async def delete_rows(tx: RecordTransaction, resources: Resources, record_ids: Sequence[str]) -> int:
    """Delete turns past their retention with every copy of their text; what was learnt from them stays.

    Return how many of them were still there.
    """
    await session_queries.lock(tx, sorted({turn_key_of(id_)[0] for id_ in record_ids}))
    existing_ids = sorted(await turn_queries.versions(tx, record_ids)) if record_ids else []
    turn_keys = [turn_key_of(record_id) for record_id in existing_ids]
    counts = Counter(session_id for session_id, _ in turn_keys)
    rows = Deletion(tx.tenant, {Subject.TURN: existing_ids})
    if await embedding_cache.has_any(tx):
        rows.embedding_texts = await log_queries.list_embedding_texts(tx, turn_keys)
    rows.add_items(removal.points_of(RecordKind.TURN), existing_ids)
    rows.add_items(removal.WINDOW, list(counts))
    await deletion.delete(tx, resources, rows)
    for session_id, count in sorted(counts.items()):
        await session_queries.note_log_change(tx, session_id, more_turns=-count)
    return len(existing_ids)
