"""Import the line of a session: open it under the rules of every session, with what the line carries.

A session that exists keeps what it is; its metadata become those of the line.
"""

from shared.conversation.sessions.open import new_columns, place_session
from shared.conversation.sessions.session import SessionKind
from shared.foundation import errors
from shared.infra.postgres import transaction_time
from shared.lifecycle import erasure_queries
from shared.lifecycle.transfer import row_ids, row_queries
from shared.lifecycle.transfer.import_rows import Target
from shared.lifecycle.transfer.row_checks import Fields
from shared.lifecycle.transfer.row_kind import compared_columns
from shared.lifecycle.transfer.row_owners import RowLine
from shared.lifecycle.transfer.scope_report import KindReport, ScopeReport
from shared.memory.working import entries


async def import_session(target: Target, line: RowLine, report: ScopeReport) -> None:
    """Import a session. One that can't be opened here is refused, with the reason.

    Raises errors.Conflict if the user or agent was erased since the import began.
    """
    part = KindReport()
    try:
        await _commit(target, line, part)
    except _RefusedSession as refusal:
        report.refuse([line.number], line.kind.name, str(refusal))
        return
    report.of(line.kind.name).add(part)


class _RefusedSession(Exception):
    """The rule because of which a session can't be opened. It ends the transaction."""


async def _commit(target: Target, line: RowLine, part: KindReport) -> None:
    scope = target.scope
    async with target.resources.postgres.for_tenant(scope.tenant) as tx:
        await erasure_queries.require_not_erased(tx, scope, target.erasures)
        ids = await row_ids.map_session_ids(tx, scope, [line.fields["id"]])
        session_id = ids[line.fields["id"]]
        if session_id != line.fields["id"]:
            part.remapped[line.fields["id"]] = session_id
        row = (await row_queries.lock_rows(tx, line.kind, scope, [(session_id,)])).get((session_id,))
        if row is not None:
            named = compared_columns(line.kind) & line.fields.keys()
            changes = {name: line.fields[name] for name in named if line.fields[name] != row[name]}
            part.updated, part.skipped = int(bool(changes)), int(not changes)
            if changes:
                await row_queries.update_row(tx, line.kind, row, changes)
            return
        expires_at = line.fields.get("expires_at")
        if expires_at is not None and expires_at <= await transaction_time(tx):
            raise _RefusedSession("the session is over")
        try:
            await place_session(
                tx, target.resources, target.caller, _columns(target, line, session_id), entries.holds_entries
            )
        except errors.Conflict as error:
            raise _RefusedSession(str(error)) from None
        part.created = 1


def _columns(target: Target, line: RowLine, session_id: str) -> Fields:
    kind, name = SessionKind(line.fields["kind"]), line.fields.get("name")
    return new_columns(target.scope, session_id, kind, name) | line.fields | {"id": session_id}
