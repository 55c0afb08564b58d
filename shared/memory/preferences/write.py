"""Write preferences: what a caller says, and what was learnt from conversations.

A caller's rule takes the place of what stands under its key, whatever that was. What was learnt never
replaces anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.foundation import errors, versions
from shared.foundation.origin import Origin, Trust
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import RecordKind
from shared.foundation.versions import ABSENT, Expected
from shared.infra.transaction import Transaction
from shared.memory.longterm import tombstones
from shared.memory.preferences import domain_file, index_document, permission, queries
from shared.memory.preferences.preference import (
    MAX_DESCRIPTION,
    Condition,
    Effect,
    Preference,
    PreferenceBasis,
    PreferenceDraft,
    check_key,
    tombstone_text,
)
from shared.memory.preferences.record_type import PREFERENCE
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

_MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class LearntPreference:
    """A wish that was learnt together with a memory: it sets the slot `slot` to the wish in words."""

    key: str
    slot: str
    text: str
    memory_id: str
    basis: PreferenceBasis
    requires_user_permission: bool
    origin: Origin

    @property
    def draft(self) -> PreferenceDraft:
        """The rule that it becomes. It has no condition: search finds it by what it says."""
        effect = Effect(slot=self.slot, value=self.text)
        return PreferenceDraft(condition=Condition(description=self.text), effect=effect)


async def put(
    resources: Resources,
    caller: Caller,
    scope: Scope,
    key: str,
    draft: PreferenceDraft,
    expected: Expected | None = None,
    *,
    trust: Trust | None = None,
    by_model: bool = False,
) -> Preference:
    """Store a rule under a key of exactly this scope, and return it.

    If it needs the user's permission, this is the permission if the key may give it (`permission.py`) and the
    rule is not written `by_model`. It may be one that was deleted before: a caller wants it again. Raises
    errors.PreconditionFailed unless the version that stands there is `expected`, and errors.Invalid for more
    `trust` than the caller has.
    """
    check_key(key)
    origin = caller.origin.lowered(trust)
    checked = draft.validated()
    domain_file.check_effect(resources.settings, key, checked.effect)
    async with resources.transaction(scope.tenant) as tx:
        preference = await _store(tx, caller, scope, key, checked, expected, origin, by_model=by_model)
        await tombstones.remove(tx, scope, [tombstone_text(key, checked)])
        await index(tx, [preference])
    return preference


async def _store(
    tx: Transaction,
    caller: Caller,
    scope: Scope,
    key: str,
    draft: PreferenceDraft,
    expected: Expected | None,
    origin: Origin,
    *,
    by_model: bool,
) -> Preference:
    rule = {**draft.columns(), "origin": PreferenceBasis.EXPLICIT, "memory_id": None}
    for _ in range(_MAX_ATTEMPTS):
        before = await queries.lock(tx, scope, key)
        versions.check(f"preference '{key}'", before.version if before else ABSENT, expected)
        columns = rule | permission.columns(caller, scope, key, draft, before, by_model=by_model)
        if before is not None:
            return await PREFERENCE.replace(tx, before.id, columns, origin)
        if (created := await queries.insert_new(tx, scope, key, columns, origin)) is not None:
            return created
    raise errors.Busy("others keep writing and deleting under this key")


async def add_learnt(
    tx: RecordTransaction,
    scope: Scope,
    learnt: Sequence[LearntPreference],
    *,
    is_asked_for: bool = False,
) -> list[Preference]:
    """Store what was learnt with locked memories, and return what is new.

    A key that is taken keeps what it has, a memory has one preference at most, and what is longer than a
    described situation may be is no rule. What was deleted before stays deleted, unless a caller asks for it.
    """
    known = await queries.list_known_memories(tx, [item.memory_id for item in learnt])
    new = [item for item in learnt if item.memory_id not in known and len(item.text) <= MAX_DESCRIPTION]
    texts = {item.key: tombstone_text(item.key, item.draft) for item in new}
    if is_asked_for:
        await tombstones.remove(tx, scope, list(texts.values()))
    deleted = await tombstones.find_deleted(tx, scope, list(texts.values())) if texts else set()
    added = [
        await queries.insert_new(tx, scope, item.key, _learnt_columns(item), item.origin)
        for item in new
        if texts[item.key] not in deleted
    ]
    preferences = [preference for preference in added if preference is not None]
    await index(tx, preferences)
    return preferences


def _learnt_columns(learnt: LearntPreference) -> dict[str, Any]:
    draft = learnt.draft
    is_sensitive = permission.is_about_sensitive(learnt.key, draft.condition, draft.effect)
    return {
        **draft.columns(),
        "origin": learnt.basis,
        "memory_id": learnt.memory_id,
        "requires_user_permission": learnt.requires_user_permission or is_sensitive,
    }


async def index(tx: RecordTransaction, preferences: Sequence[Preference]) -> None:
    """Index written preferences: one that had a description may have a point."""
    described = [preference for preference in preferences if preference.condition.description is not None]
    without = {item.id: item.version for item in preferences if item not in described}
    await tx.index([index_document.document(preference) for preference in described])
    await tx.remove_points(RecordKind.PREFERENCE, without)
