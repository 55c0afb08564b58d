"""Read playbooks."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.foundation import errors, validation
from shared.foundation.scope import Caller, Scope
from shared.infra.postgres import visible_scope
from shared.memory.playbooks import queries, settle
from shared.memory.playbooks.playbook import Playbook
from shared.memory.playbooks.record_type import PLAYBOOK
from shared.memory.playbooks.table import playbook as playbook_table
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources


async def get(resources: Resources, caller: Caller, playbook_id: str) -> Playbook:
    """Return a playbook. Raises errors.NotFound if there is none that the caller may read."""
    missing = f"no playbook '{playbook_id}'"
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        playbook = await queries.get(tx, playbook_id)
    if playbook is None:
        raise errors.NotFound(missing)
    owner = Owner(playbook.agent_id, playbook.user_id)
    rights.require(caller, Area.MEMORIES, Action.READ, owner, missing)
    return await settle.settle_one(resources, playbook)


async def list_playbooks(
    resources: Resources,
    scope: Scope,
    filters: Mapping[str, Any],
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[Playbook]:
    """Return playbooks that a scope sees, newest first, from the position (created_at, id) `after` on.

    `filters` are column values.
    """
    if "flow_dact" in filters:
        validation.check_technical_id(filters["flow_dact"], "flow")
    await settle.settle_visible(resources, scope)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        conditions = [playbook_table.c[name] == value for name, value in filters.items()]
        visible = visible_scope(playbook_table, scope)
        return await PLAYBOOK.read_page(tx, limit, after, visible, *conditions, newest_first=True)
