"""Write preferences: what a caller says, and what was learnt from conversations.

A caller's rule takes the place of what stands under its key, whatever that was. What was learnt never
replaces anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors, versions
from shared.foundation.config import Settings
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import RecordKind
from shared.foundation.versions import ABSENT, Expected
from shared.jobs import index_jobs
from shared.jobs.job import Job
from shared.memory.preferences import domain_file, index_document, queries
from shared.memory.preferences.preference import (
    MAX_DESCRIPTION,
    Condition,
    Effect,
    Preference,
    PreferenceDraft,
    PreferenceOrigin,
    check_key,
)
from shared.platform.resources import Resources
from shared.search.index.writer import WRITE_THROUGH_SECONDS

_MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class LearntPreference:
    """A wish that was learnt together with a memory: it sets the slot `slot` to the wish in words."""

    key: str
    slot: str
    text: str
    memory_id: str
    origin: PreferenceOrigin
    requires_user_permission: bool


async def put(
    resources: Resources,
    caller: Caller,
    scope: Scope,
    key: str,
    draft: PreferenceDraft,
    expected: Expected | None = None,
) -> Preference:
    """Store a rule under a key of exactly this scope, and return it.

    If it stands for one that needs the user's permission, this is the permission if the key is bound to the
    user; an agent's own rule has no user to ask. Raises errors.PreconditionFailed unless the version that
    stands there is `expected`.
    """
    check_key(key)
    columns = _columns(resources.settings, key, draft)
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        preference = await _store(connection, caller, scope, key, columns, expected)
        jobs = await _enqueue(connection, [preference], delay=WRITE_THROUGH_SECONDS)
    await resources.index_writer.write_through(index_document.documents([preference]), jobs)
    return preference


def _columns(settings: Settings, key: str, draft: PreferenceDraft) -> dict[str, Any]:
    checked = draft.validated()
    domain_file.check_effect(settings, key, checked.effect)
    return {**checked.columns(), "origin": PreferenceOrigin.EXPLICIT, "memory_id": None}


async def _store(
    connection: AsyncConnection,
    caller: Caller,
    scope: Scope,
    key: str,
    columns: dict[str, Any],
    expected: Expected | None,
) -> Preference:
    for _ in range(_MAX_ATTEMPTS):
        before = await queries.lock(connection, scope, key)
        versions.check(f"preference '{key}'", before.version if before else ABSENT, expected)
        if before is not None:
            return await queries.replace(connection, before, columns | _permission(caller, before))
        if (created := await queries.insert_new(connection, scope, key, columns)) is not None:
            return created
    raise errors.Busy("others keep writing and deleting under this key")


def _permission(caller: Caller, before: Preference) -> dict[str, Any]:
    """Return the columns that grant the permission that a preference needs, if this caller may."""
    may_grant = before.user_id is None or before.user_id == caller.user_id
    is_asked = before.requires_user_permission and before.permission_granted_at is None
    return {"permission_granted_at": func.now()} if is_asked and may_grant else {}


async def add_learnt(
    connection: AsyncConnection, scope: Scope, learnt: Sequence[LearntPreference], *, delay: float = 0
) -> tuple[list[Preference], list[Job]]:
    """Store what was learnt with locked memories, and return what is new with its index jobs.

    A key that is taken keeps what it has, a memory has one preference at most, and what is longer than a
    described situation may be is no rule.
    """
    known = await queries.list_known_memories(connection, scope.tenant, [item.memory_id for item in learnt])
    added = [
        await queries.insert_new(connection, scope, item.key, _learnt_columns(item))
        for item in learnt
        if item.memory_id not in known and len(item.text) <= MAX_DESCRIPTION
    ]
    preferences = [preference for preference in added if preference is not None]
    return preferences, await _enqueue(connection, preferences, delay=delay)


def _learnt_columns(learnt: LearntPreference) -> dict[str, Any]:
    draft = PreferenceDraft(
        condition=Condition(description=learnt.text), effect=Effect(slot=learnt.slot, value=learnt.text)
    )
    return {
        **draft.columns(),
        "origin": learnt.origin,
        "memory_id": learnt.memory_id,
        "requires_user_permission": learnt.requires_user_permission,
    }


async def _enqueue(
    connection: AsyncConnection, preferences: Sequence[Preference], *, delay: float
) -> list[Job]:
    """Enqueue the index jobs of written preferences: one that had a description may have a point."""
    if not preferences:
        return []
    new_versions = {preference.id: preference.version for preference in preferences}
    return await index_jobs.enqueue_index_jobs(
        connection, preferences[0].tenant, RecordKind.PREFERENCE, new_versions, delay=delay
    )
