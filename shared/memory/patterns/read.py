"""Read industry patterns: what at least five consenting tenants have in common.

Who does not share sees nothing. A pattern of fewer than five tenants is shown to nobody, not even to one that
has it: an id that somebody put a name into stays at home. The database decides all of that in one function,
`shared_patterns`, the only one that reads across tenants.
"""

from shared.foundation import validation
from shared.foundation.scope import Caller
from shared.memory.patterns import queries
from shared.memory.patterns.pattern import Pattern
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources


async def list_patterns(
    resources: Resources, caller: Caller, flow: str | None, limit: int, first: str | None
) -> list[Pattern]:
    """Return patterns, of one flow or all, in the order of their flows, from the position `first` on."""
    rights.require_area(caller, Area.TENANT, Action.READ)
    if flow is not None:
        validation.check_technical_id(flow, "flow")
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await queries.list_patterns(tx, flow, first or "", limit)
