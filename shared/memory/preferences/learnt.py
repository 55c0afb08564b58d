"""Let a learnt preference go on with its memory when that is edited, or purged in favour of another.

Whether it applies while its memory is archived or has ended needs no step: `queries.in_force` asks.
"""

from collections.abc import Mapping, Sequence

from shared.foundation.origin import Origin
from shared.infra.transaction import Transaction
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Archiver, Memory
from shared.memory.preferences import permission, queries
from shared.memory.preferences.preference import Condition, Effect, Preference, PreferenceDraft
from shared.memory.preferences.record_type import PREFERENCE

_NO_HEIR = frozenset({Archiver.CALLER, Archiver.EXPIRY})


async def rewrite(tx: Transaction, memory: Memory) -> list[Preference]:
    """Let what was learnt with a locked memory say what that says now, and return it in its new version.

    The user's permission was for what it said before.
    """
    origin = Origin.derived([memory.origin.trust])
    rewritten: list[Preference] = []
    for preference in await queries.lock_learnt(tx, memory.id):
        draft = PreferenceDraft(
            condition=Condition(flow=preference.condition.flow, description=memory.content),
            effect=Effect(slot=preference.effect.slot, value=memory.content),
            related=tuple(preference.related),
        )
        must_ask = permission.is_about_sensitive(preference.key, draft.condition, draft.effect)
        columns = {
            **draft.columns(),
            "requires_user_permission": preference.requires_user_permission or must_ask,
            "permission_granted_at": None,
        }
        rewritten.append(await PREFERENCE.replace(tx, preference.id, columns, origin))
    return rewritten


async def hand_over(tx: Transaction, purged: Sequence[Memory]) -> None:
    """Hand the preferences of archived memories, which are about to be deleted, over to their successors.

    Those whose memory a caller archived, or whose memory has no successor any more, are left to go with it.
    """
    by_id = {memory.id: memory for memory in purged}
    taught = await queries.list_known_memories(tx, list(by_id))
    if not taught:
        return
    named = {id_ for memory in purged for id_ in memory.superseded_by}
    others = await memory_queries.read(tx, sorted(named - by_id.keys()))
    existing = {memory.id for memory in others}
    heirs = {memory_id: _heir(by_id[memory_id], by_id, existing) for memory_id in taught}
    found = {memory_id: heir for memory_id, heir in heirs.items() if heir is not None}
    await queries.hand_over(tx, found)


def _heir(memory: Memory, purged: Mapping[str, Memory], existing: set[str]) -> str | None:
    """Return the first memory that goes on in place of this one, and is not purged itself."""
    steps, seen = [memory], {memory.id}
    while steps:
        step = steps.pop(0)
        if step.archived_by in _NO_HEIR or step.valid_until is not None:
            continue
        for id_ in step.superseded_by:
            if id_ in existing:
                return id_
            if id_ in purged and id_ not in seen:
                seen.add(id_)
                steps.append(purged[id_])
    return None
