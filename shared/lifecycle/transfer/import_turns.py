"""Import a log of turns into sessions, each turn once.

Two turns are the same if session, role, content and time are. That is checked while the session is
locked, and does not rely on an idempotency key: the log of a running agent grows, and keys are kept for
a day only. Turns are numbered in the order of the import; they keep their own times.

A session keeps its id if the id is unused here or belongs to this scope's session already. Otherwise,
and if the id is not valid here, it gets an id computed from it, which the report names.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from shared.conversation.sessions.open import get_session, new_columns, place_session, validate_id
from shared.conversation.sessions.session import Session
from shared.conversation.turns import append
from shared.conversation.turns import queries as turn_queries
from shared.conversation.turns.turn import Turn, TurnDraft
from shared.foundation import errors
from shared.foundation.scope import Caller, Scope
from shared.infra.transaction import Transaction
from shared.lifecycle import erasure_queries
from shared.lifecycle.erasure_queries import Erasures
from shared.lifecycle.transfer import rockbot
from shared.lifecycle.transfer.rockbot import ImportedTurn
from shared.memory.working import entries
from shared.platform.resources import Resources

_BATCH = 500


@dataclass(slots=True)
class _TurnImport:
    """The state of one import; `sessions` maps each id of the log to the id here."""

    resources: Resources
    caller: Caller
    scope: Scope
    sessions: dict[str, str] = field(default_factory=dict)
    erasures: Erasures = field(default_factory=list)
    created: int = 0
    skipped: int = 0


async def import_turns(resources: Resources, caller: Caller, scope: Scope, file: Path) -> dict[str, Any]:
    """Append the turns of a log that the sessions lack, and return the report.

    The report is {"created", "skipped", "remapped": {session: its id here}, "malformed": [{"line", "rule"}]}.
    """
    progress, malformed = _TurnImport(resources, caller, scope), list[dict[str, Any]]()
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        progress.erasures = await erasure_queries.list_last(tx, scope)
    for log_id, drafts in _group_by_session(rockbot.read_turns(file, malformed)):
        await _append_missing(progress, log_id, drafts)
    return {
        "created": progress.created,
        "skipped": progress.skipped,
        "remapped": {
            log_id: session_id for log_id, session_id in progress.sessions.items() if log_id != session_id
        },
        "malformed": malformed,
    }


def _group_by_session(turns: Iterator[ImportedTurn]) -> Iterator[tuple[str, list[TurnDraft]]]:
    """Read a batch of turns at a time and group it by session, in their order."""
    while batch := list(islice(turns, _BATCH)):
        groups: dict[str, list[TurnDraft]] = {}
        for imported in batch:
            groups.setdefault(imported.session_id, []).append(imported.draft)
        yield from groups.items()


async def _append_missing(progress: _TurnImport, log_id: str, drafts: Sequence[TurnDraft]) -> None:
    resources, caller = progress.resources, progress.caller
    if log_id not in progress.sessions:
        progress.sessions[log_id] = await _open_session(progress, log_id)
    session_id = progress.sessions[log_id]
    async with resources.transaction(caller.tenant) as tx:
        await erasure_queries.require_not_erased(tx, progress.scope, progress.erasures)
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        missing_drafts = await _select_missing(tx, session, drafts)
        origins = [draft.origin(caller).imported(caller.origin) for draft in missing_drafts]
        await append.insert_turns(tx, resources, session, missing_drafts, origins, is_activity=False)
    progress.created += len(missing_drafts)
    progress.skipped += len(drafts) - len(missing_drafts)


class _TakenId(Exception):
    """Another scope has this id. It ends the transaction."""


async def _open_session(progress: _TurnImport, log_id: str) -> str:
    for session_id in _candidate_ids(progress.scope, log_id):
        with suppress(_TakenId):
            return await _place_session(progress, session_id)
    raise errors.Conflict(f"no id is free for the session '{log_id}'")


async def _place_session(progress: _TurnImport, session_id: str) -> str:
    resources, scope = progress.resources, progress.scope
    columns = new_columns(scope, session_id)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        await erasure_queries.require_not_erased(tx, scope, progress.erasures)
        try:
            session = await place_session(tx, resources, progress.caller, columns, entries.holds_entries)
        except errors.Conflict:
            raise _TakenId from None
    return session.id


def _candidate_ids(scope: Scope, log_id: str) -> Iterator[str]:
    with suppress(errors.Invalid):
        yield validate_id(log_id)
    name = "\x1f".join((scope.agent_id, scope.user_id or "", log_id))
    yield f"imported/{hashlib.sha256(name.encode()).hexdigest()[:24]}"


async def _select_missing(tx: Transaction, session: Session, drafts: Sequence[TurnDraft]) -> list[TurnDraft]:
    """Return the turns that a locked session lacks, each once."""
    times = {draft.created_at for draft in drafts}
    stored_turns = await turn_queries.list_created_at(tx, session, times)
    existing_identities = {_identity(stored_turn) for stored_turn in stored_turns}
    by_identity = {_identity(draft): draft for draft in drafts}
    return [draft for identity, draft in by_identity.items() if identity not in existing_identities]


def _identity(turn_: Turn | TurnDraft) -> tuple[str, str, datetime | None]:
    return turn_.role, turn_.content, turn_.created_at
