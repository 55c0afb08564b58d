"""Find and lock the owners of imported rows: the agent, the sessions, or their state stores.

A session is locked, so that nobody adds to it or deletes it meanwhile. A session that was deleted since its
line was imported is not created anew by a line of its turns.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from shared.conversation.sessions import queries as session_queries
from shared.conversation.state import queries as state_queries
from shared.conversation.state import types as state_types
from shared.conversation.state.types import Caps, OwnerKind
from shared.conversation.summary import queries as summary_queries
from shared.foundation.config import Settings
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.jobs import summary_jobs
from shared.lifecycle.transfer import row_ids, row_queries
from shared.lifecycle.transfer.row_checks import Fields
from shared.lifecycle.transfer.row_kind import LineKind, Owner, RowKind
from shared.lifecycle.transfer.row_queries import Key
from shared.platform.agents import queries as agent_queries
from shared.platform.auth import queries as auth_queries

Versions = dict[state_types.Owner, int]
"""The version of the last write of each locked state store."""


@dataclass(frozen=True, slots=True)
class RowLine:
    """A parsed line: its number in the upload, its kind, and the columns that it names."""

    number: int
    kind: RowKind
    fields: Fields

    @property
    def is_of_agent(self) -> bool:
        """Whether the row belongs to the agent as a whole."""
        names_agent = self.fields.get("owner_kind") == OwnerKind.AGENT
        return names_agent or self.kind.owner is Owner.AGENT or self.kind.name is LineKind.AGENT

    def key(self, scope: Scope) -> Key:
        """Return the key of the row in a scope."""
        columns = self.fields | row_queries.owner_columns(self.kind, scope)
        return tuple(columns[name] for name in self.kind.key)

    def with_fields(self, **columns: Any) -> "RowLine":
        """Return the line with other values in some columns."""
        return RowLine(self.number, self.kind, self.fields | columns)


async def lock_owners(
    tx: Transaction, scope: Scope, lines: Sequence[RowLine]
) -> tuple[list[RowLine], list[int]]:
    """Lock the owners of lines of one kind; return the lines with the ids that their owners have here.

    Return also the numbers of the lines whose session is not there.
    """
    kind, is_of_agent = lines[0].kind, lines[0].is_of_agent
    if kind.owner is Owner.SCOPE:
        return list(lines), []
    if is_of_agent:
        await agent_queries.lock(tx, scope.agent_id)
        is_state = kind.owner is Owner.STATE_STORE
        return [line.with_fields(owner_id=scope.agent_id) if is_state else line for line in lines], []
    column = "owner_id" if kind.owner is Owner.STATE_STORE else "session_id"
    ids = await row_ids.map_session_ids(tx, scope, {line.fields[column] for line in lines})
    sessions = await row_queries.lock_sessions(tx, scope, set(ids.values()))
    mapped = [line.with_fields(**{column: ids[line.fields[column]]}) for line in lines]
    missing = [line.number for line in mapped if line.fields[column] not in sessions]
    return [line for line in mapped if line.fields[column] in sessions], missing


async def map_row_ids(tx: Transaction, scope: Scope, lines: Sequence[RowLine]) -> dict[str, str]:
    """Return the new ids of those lines whose id a row of another owner has, by the ids of the lines."""
    if not lines or not lines[0].kind.is_keyed_by_id:
        return {}
    kind = lines[0].kind
    rows = await row_queries.lock_rows(tx, kind, scope, [line.key(scope) for line in lines])
    secret = await auth_queries.get_tenant_secret(tx, scope.tenant)
    new_ids: dict[str, str] = {}
    for line in lines:
        owner_id, row = _owner_id(scope, kind, line.fields), rows.get(line.key(scope))
        if row is not None and _owner_id(scope, kind, row) != owner_id:
            new_ids[line.fields["id"]] = row_ids.computed_row_id(
                secret, kind.name, owner_id, line.fields["id"]
            )
    return new_ids


def _owner_id(scope: Scope, kind: RowKind, row: Mapping[str, Any] | RowMapping) -> str:
    if kind.owner is Owner.SESSION:
        return str(row["session_id"])
    agent_id, user_id = row.get("agent_id", scope.agent_id), row.get("user_id", scope.user_id)
    return str(agent_id) if kind.owner is Owner.AGENT else json.dumps([agent_id, user_id])


async def lock_state_stores(tx: Transaction, scope: Scope, lines: Iterable[RowLine]) -> Versions:
    """Lock the state stores that lines name, and return the version of each one's next write."""
    if any(line.kind.owner is not Owner.STATE_STORE for line in lines):
        return {}
    owners = {state_owner(scope.tenant, line.fields) for line in lines}
    in_order = sorted(owners, key=lambda owner: (owner.kind, owner.id))
    return {owner: await state_queries.next_version(tx, owner) for owner in in_order}


def state_owner(tenant: str, fields: Fields) -> state_types.Owner:
    """Return the owner of the state store that a row is in."""
    return state_types.Owner(tenant, OwnerKind(fields["owner_kind"]), fields["owner_id"])


async def finish_state_stores(
    tx: Transaction, settings: Settings, kind: RowKind, created: Iterable[Fields], versions: Versions
) -> None:
    """Let the next write of each state store follow the imported ones; delete what is over its maximum."""
    last_versions = dict(versions)
    for row in created if versions else ():
        owner = state_owner(row["tenant"], row)
        last_versions[owner] = max(last_versions[owner], row["version"])
    for owner, version in last_versions.items():
        await state_queries.raise_version(tx, owner, version)
        caps = Caps.from_settings(settings, owner.kind)
        if kind.name is LineKind.STATE_KEY:
            await state_queries.evict_keys(tx, owner, caps.keys)
        elif kind.name is LineKind.TRANSCRIPT_ENTRY:
            await state_queries.evict_entries(tx, owner, caps.entries)


async def finish_sessions(tx: Transaction, turns: Iterable[Fields]) -> None:
    """Count the inserted turns of each session; its next turn follows them.

    A summary that has later turns lacks those that came back, so it is made anew.
    """
    seqs: dict[str, list[int]] = {}
    for row in turns:
        seqs.setdefault(row["session_id"], []).append(row["seq"])
    for session_id, of_session in seqs.items():
        await session_queries.note_log_change(
            tx, session_id, more_turns=len(of_session), last_seq=max(of_session)
        )
        if await summary_queries.delete_covering(tx, session_id, min(of_session)):
            await summary_jobs.schedule_summary(tx, session_id)
