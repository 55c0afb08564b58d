"""Find the lines of preferences and playbooks that say what a caller has deleted on purpose.

A rule is remembered as it stood under its key, a playbook by its id and by its query. What was learnt with a
memory that was deleted says the text of that memory, which has a tombstone of its own.
"""

from collections.abc import Callable, Sequence

from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle.transfer.row_checks import Fields
from shared.lifecycle.transfer.row_kind import LineKind
from shared.lifecycle.transfer.row_owners import RowLine
from shared.lifecycle.transfer.row_queries import Key
from shared.memory.longterm import tombstones
from shared.memory.playbooks import playbook as playbooks
from shared.memory.preferences import preference as preferences
from shared.memory.preferences.preference import Condition, Effect, PreferenceDraft


async def find(tx: Transaction, scope: Scope, lines: Sequence[RowLine]) -> set[Key]:
    """Return the keys of those of these lines, all of one kind, whose text has a tombstone in the scope."""
    texts_of = _TEXTS.get(lines[0].kind.name) if lines else None
    if texts_of is None:
        return set()
    texts = {line.key(scope): texts_of(line.fields) for line in lines}
    deleted = await tombstones.find_deleted(
        tx, scope, sorted({text for named in texts.values() for text in named})
    )
    return {key for key, named in texts.items() if not deleted.isdisjoint(named)}


async def restore(tx: Transaction, scope: Scope, kind: LineKind, rows: Sequence[Fields]) -> None:
    """Delete the tombstones of imported rows of one kind, which were asked for although deleted before."""
    texts_of = _TEXTS.get(kind)
    if texts_of is not None and rows:
        await tombstones.remove(tx, scope, [text for row in rows for text in texts_of(row)])


def _texts_of_preference(fields: Fields) -> list[str]:
    draft = PreferenceDraft(
        condition=Condition(flow=fields.get("flow"), description=fields.get("description")),
        effect=Effect(slot=fields.get("slot"), value=fields.get("value"), template=fields.get("template")),
    )
    said = (draft.condition.description, draft.effect.template, draft.effect.value)
    facts = [text for text in said if isinstance(text, str)]
    return [preferences.tombstone_text(fields["key"], draft), *facts]


def _texts_of_playbook(fields: Fields) -> list[str]:
    query = fields["user_query"]
    return [playbooks.id_tombstone(fields["id"]), playbooks.query_tombstone(query), query]


_TEXTS: dict[LineKind, Callable[[Fields], list[str]]] = {
    LineKind.PREFERENCE: _texts_of_preference,
    LineKind.PLAYBOOK: _texts_of_playbook,
}
