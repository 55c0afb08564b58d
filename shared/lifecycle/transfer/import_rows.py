"""Import a batch of lines of one kind of rows: one transaction, then the index, as with a save.

An import goes by the key of a row. A row that is there already is skipped if it is the same. If it is
not, what is written by replacing it (keys, collections, files, profiles, texts) is overwritten; what is a
record of what happened (turns, observations, signals, transcripts) is kept and reported.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import uuid_utils
from sqlalchemy import JSON, RowMapping
from sqlalchemy.exc import IntegrityError

from shared.conversation.state import types as state_types
from shared.conversation.turns import window
from shared.conversation.turns.turn import record_id_of
from shared.foundation import errors, json_values
from shared.foundation.origin import Channel, Origin, trust_of_role
from shared.foundation.roles import Role
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import RecordKind
from shared.infra.postgres import transaction_time
from shared.infra.transaction import Transaction
from shared.lifecycle import erasure_queries
from shared.lifecycle.erasure_queries import Erasures
from shared.lifecycle.kinds import ROW_KINDS
from shared.lifecycle.transfer import (
    deleted_rows,
    learnt_lines,
    pinned_lines,
    row_owners,
    row_queries,
    skill_lines,
    summary_lines,
)
from shared.lifecycle.transfer.row_checks import Fields
from shared.lifecycle.transfer.row_kind import LineKind, Owner, RowKind, compared_columns
from shared.lifecycle.transfer.row_owners import RowLine, Versions
from shared.lifecycle.transfer.scope_report import KindReport, ScopeReport
from shared.memory.skills import queries as skill_queries
from shared.platform.auth import rights
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

_MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Target:
    """Where an import writes, for whom, and when its owner was last erased before the lines were received.

    With `restore`, what was deleted on purpose is imported too.
    """

    resources: Resources
    caller: Caller
    scope: Scope
    erasures: Erasures
    restore: bool


@dataclass(slots=True)
class _Batch:
    """What one transaction did; `refused` are numbers of lines by the rule that they break."""

    kind: RowKind
    scope: Scope
    caller: Caller
    now: datetime
    versions: Versions = field(default_factory=dict)
    created: list[Fields] = field(default_factory=list)
    part: KindReport = field(default_factory=KindReport)
    refused: dict[str, list[int]] = field(default_factory=dict)
    deleted_keys: set[row_queries.Key] = field(default_factory=set)


async def import_rows(target: Target, lines: Sequence[RowLine], report: ScopeReport) -> None:
    """Import lines of one kind and one kind of owner, of which no two have the same key.

    Raises errors.Busy if others keep writing the same rows, and errors.Conflict if the user or agent was
    erased since the import began.
    """
    for _ in range(_MAX_ATTEMPTS):
        try:
            batch = await _commit(target, lines)
        except IntegrityError:
            continue
        report.of(batch.kind.name).add(batch.part)
        for rule, numbers in batch.refused.items():
            report.refuse(numbers, batch.kind.name, rule)
        return
    raise errors.Busy("others are writing these records; what was imported so far is stored: try again")


async def _commit(target: Target, lines: Sequence[RowLine]) -> _Batch:
    scope = target.scope
    async with target.resources.transaction(scope.tenant) as tx:
        await erasure_queries.require_not_erased(tx, scope, target.erasures)
        batch = _Batch(lines[0].kind, scope, target.caller, await transaction_time(tx))
        owned_lines, without_session = await row_owners.lock_owners(tx, scope, lines)
        batch.refused["its session is not there"] = without_session
        selected_lines = await _select_lines(tx, target, batch, owned_lines)
        batch.part.remapped = await row_owners.map_row_ids(tx, scope, selected_lines)
        batch.versions = await row_owners.lock_state_stores(tx, scope, selected_lines)
        named_lines = [_with_new_id(batch, line) for line in selected_lines]
        if batch.kind.name is LineKind.PREFERENCE:
            named_lines = await learnt_lines.link(tx, scope, named_lines)
        if not target.restore:
            batch.deleted_keys = await deleted_rows.find(tx, scope, named_lines)
        await _write_rows(tx, batch, named_lines)
        await _finish(tx, target, batch)
        await _index(tx, batch)
        tx.after_commit(partial(_drop_windows, target.resources, batch))
        return batch


async def _select_lines(
    tx: Transaction, target: Target, batch: _Batch, lines: list[RowLine]
) -> list[RowLine]:
    """Return the lines that the rules of their kind let in; note the numbers of the others by rule."""
    scope, settings = target.scope, target.resources.settings
    match batch.kind.name:
        case LineKind.TURN | LineKind.TRANSCRIPT_ENTRY:
            lines, batch.refused[rights.SYSTEM_RULE] = _split_by_voice(target.caller, lines)
        case LineKind.PINNED_TEXT:
            lines, batch.refused[pinned_lines.NO_ROOM] = await pinned_lines.select_fitting(
                tx, scope, lines, settings.context_max_pinned_chars
            )
        case LineKind.SKILL_FILE | LineKind.SKILL:
            lines, refused = await skill_lines.select_complete(tx, settings, scope, lines)
            batch.refused |= refused
        case LineKind.SESSION_SUMMARY:
            lines, batch.refused[summary_lines.AHEAD] = await summary_lines.select_behind_windows(
                tx, scope, lines
            )
    return lines


async def _finish(tx: Transaction, target: Target, batch: _Batch) -> None:
    """Bring what belongs to the rows into line with them: versions, tombstones, sessions, state stores."""
    scope, kind = batch.scope, batch.kind
    if kind.name is LineKind.SKILL:
        await skill_queries.add_first_versions(tx, scope)
    if target.restore:
        await deleted_rows.restore(tx, scope, kind.name, batch.created)
    if kind.name is LineKind.TURN:
        await row_owners.finish_sessions(tx, batch.created)
    settings = target.resources.settings
    await row_owners.finish_state_stores(tx, settings, kind, batch.created, batch.versions)


def _split_by_voice(caller: Caller, lines: Sequence[RowLine]) -> tuple[list[RowLine], list[int]]:
    """Return the lines whose roles and speakers the key may speak as, and the line numbers of the others."""
    is_allowed = [
        rights.may_speak_as(caller, Role(line.fields["role"]), line.fields.get("speaker")) for line in lines
    ]
    allowed = [line for line, is_own in zip(lines, is_allowed, strict=True) if is_own]
    return allowed, [line.number for line, is_own in zip(lines, is_allowed, strict=True) if not is_own]


def _with_new_id(batch: _Batch, line: RowLine) -> RowLine:
    new_id = batch.part.remapped.get(line.fields.get("id", ""))
    return line if new_id is None else line.with_fields(id=new_id)


async def _write_rows(tx: Transaction, batch: _Batch, lines: Sequence[RowLine]) -> None:
    """Skip, keep, overwrite or insert the row of each line, and count it."""
    scope, kind, part = batch.scope, batch.kind, batch.part
    rows = await row_queries.lock_rows(tx, kind, scope, [line.key(scope) for line in lines])
    for line in lines:
        row = rows.get(line.key(scope))
        if row is None:
            if line.key(scope) in batch.deleted_keys:
                part.tombstoned.append("/".join(map(str, line.key(scope))))
            else:
                batch.created.append(_new_row(batch, line))
            continue
        changes = _changes(kind, line, row)
        if not changes:
            part.skipped += 1
        elif kind.is_kept:
            part.kept.append("/".join(map(str, line.key(scope))))
        else:
            await row_queries.update_row(
                tx, kind, row, changes | _new_version(batch, line, row) | _origin(batch, line)
            )
            if kind.name is LineKind.PINNED_TEXT:
                # Stored contexts repeat the text that was replaced.
                await idempotency_queries.erase_responses(tx, [row["id"]])
            part.updated += 1
    await row_queries.insert_rows(tx, kind, batch.created)
    part.created = len(batch.created)


def _changes(kind: RowKind, line: RowLine, row: RowMapping) -> Fields:
    """Return the columns of a line that differ from those of the row: 1 and true do, in JSON."""
    named = {name: line.fields[name] for name in compared_columns(kind) & line.fields.keys()}
    return {
        name: value
        for name, value in named.items()
        if value != row[name]
        or (isinstance(kind.table.c[name].type, JSON) and not json_values.are_same(value, row[name]))
    }


def _new_row(batch: _Batch, line: RowLine) -> Fields:
    drawn: Fields = {}
    if batch.kind.draws_ids:
        drawn = {"id": str(uuid_utils.uuid7()), "version": state_types.time_to_version(batch.now)}
    return drawn | line.fields | row_queries.owner_columns(batch.kind, batch.scope) | _origin(batch, line)


def _origin(batch: _Batch, line: RowLine) -> Fields:
    """Return where the text of a line comes from: it is trusted as it was, at most as its importer and role.

    A line that says nothing of it is what its importer says.
    """
    if "origin_trust" not in batch.kind.table.c:
        return {}
    importer = batch.caller.origin
    channel = line.fields.get("origin_channel") or Channel.IMPORT
    trust = line.fields.get("origin_trust") or importer.trust
    origin = Origin(channel=channel, trust=trust).imported(importer)
    if batch.kind.name is LineKind.TURN:
        origin = origin.limited(trust_of_role(Role(line.fields["role"]), importer.trust))
    return dict(origin.columns())


def _new_version(batch: _Batch, line: RowLine, row: RowMapping) -> Fields:
    """Return the time and the version of an overwritten row: those of a write now."""
    columns: Fields = {}
    if "updated_at" in batch.kind.table.c:
        columns["updated_at"] = line.fields.get("updated_at") or batch.now
    if batch.kind.owner is Owner.STATE_STORE:
        owner = row_owners.state_owner(batch.scope.tenant, line.fields)
        columns["version"] = batch.versions[owner] = batch.versions[owner] + 1
    elif "version" in batch.kind.table.c:
        columns["version"] = max(row["version"] + 1, state_types.time_to_version(batch.now))
    return columns


async def _index(tx: RecordTransaction, batch: _Batch) -> None:
    """Let search find the inserted rows, if it finds such rows at all."""
    record_kind = batch.kind.record_kind
    if record_kind is not None and batch.created:
        record_ids = sorted(_record_id(record_kind, row) for row in batch.created)
        await tx.index(await ROW_KINDS[record_kind].read_documents(tx, record_ids))


def _record_id(record_kind: RecordKind, row: Fields) -> str:
    return record_id_of(row["session_id"], row["seq"]) if record_kind is RecordKind.TURN else str(row["id"])


async def _drop_windows(resources: Resources, batch: _Batch) -> None:
    """Drop the windows that lack the inserted turns."""
    if batch.kind.name is LineKind.TURN and batch.created:
        session_ids = sorted({row["session_id"] for row in batch.created})
        await window.delete(resources, batch.scope.tenant, session_ids)
