"""Delete a playbook with every copy of its text: its point, and the snippets that repeat it.

Tombstones keep an import from bringing it back: of its id, and of its query unless another playbook has that.
"""

from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.lifecycle import deletion
from shared.lifecycle.deletion import Deletion
from shared.memory.longterm import tombstones
from shared.memory.playbooks import queries
from shared.memory.playbooks.playbook import Playbook, id_tombstone, query_tombstone
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources


async def delete_playbook(resources: Resources, caller: Caller, playbook_id: str) -> bool:
    """Delete a playbook, and return whether there was one that the caller sees.

    Raises errors.Forbidden if the key may only read it.
    """
    async with resources.transaction(caller.tenant) as tx:
        playbook = await queries.get(tx, playbook_id, lock=True)
        if playbook is None:
            return False
        owner = Owner(playbook.agent_id, playbook.user_id)
        if not rights.allows(caller, Area.MEMORIES, Action.READ, owner):
            return False
        rights.require(caller, Area.MEMORIES, Action.WRITE, owner, "no such playbook")
        await _add_tombstones(tx, playbook)
        rows = Deletion(caller.tenant)
        await deletion.add_playbooks(tx, rows, [playbook.id])
        await deletion.delete(tx, resources, rows)
        return True


async def _add_tombstones(tx: Transaction, playbook: Playbook) -> None:
    scope, query = playbook.scope, playbook.user_query
    await tombstones.add_texts(tx, scope, {playbook.id: id_tombstone(playbook.id)})
    if not await queries.has_query(tx, scope, query, except_id=playbook.id):
        await tombstones.add_texts(tx, scope, {playbook.id: query_tombstone(query)})
