"""Edit a turn: a new version of it, and what was derived from the old one goes."""

from collections.abc import Collection, Mapping
from typing import Any

from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.conversation.turns import append, index_document, log, log_queries
from shared.conversation.turns.turn import Turn, is_read_by_models
from shared.foundation.origin import trust_of_role
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.lifecycle import removal, withdrawal
from shared.lifecycle.deletion import Deletion
from shared.lifecycle.withdrawal import Withdrawal
from shared.platform.auth import rights
from shared.platform.resources import Resources


async def edit_turn(
    resources: Resources,
    caller: Caller,
    session_id: str,
    seq: int,
    fields: Mapping[str, Any],
    expected: Collection[int] | None,
) -> Turn:
    """Change fields of a turn and return it. Fields that hold the new values already change nothing.

    With another text, speaker or time, what was derived from the turn goes, and every pass reads it again;
    metadata and the item change nothing else. Raises errors.NotFound for a session that the caller may not
    see, and for an unknown turn; errors.PreconditionFailed if the turn has no expected version; and
    errors.Invalid for a value that breaks a rule; errors.Forbidden for a turn of the system by a key that may
    not speak for it.
    """
    async with resources.transaction(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        before = await log.require_turn(tx, session, seq)
        rights.require_voice(caller, before.role, fields.get("speaker", before.speaker))
        log.check_version(seq, before, expected)
        changes = before.changes_to(fields)
        if not changes:
            return before
        # Memories are locked before turns, as everywhere, and turns before what repeats them.
        withdrawn = await _collect(tx, caller, session, before, changes)
        # Its new text is what this key says, and no more trusted than the old one was.
        trust = trust_of_role(before.role, caller.trust)
        origin = before.origin.model_copy(update={"key_id": caller.key_id}).limited(trust)
        after = await log_queries.update_turn(tx, before, changes, origin)
        await withdrawal.carry_out(tx, resources, withdrawn)
        await tx.index([index_document.document(session.scope, after)])
        if is_read_by_models(changes):
            await append.notify_dreams(tx, resources.settings, session, [after])
    return after


async def _collect(
    tx: Transaction, caller: Caller, session: Session, turn: Turn, changes: Mapping[str, Any]
) -> Withdrawal:
    """Return what goes with an edit; of what no model reads, only the cached turn is out of date."""
    if is_read_by_models(changes):
        return await withdrawal.collect(tx, session, [turn.seq], caller.key_id)
    rows = Deletion(session.tenant)
    rows.add_items(removal.WINDOW, [session.id])
    return Withdrawal(session, [turn.seq], caller.key_id, rows)
