"""Give and withdraw a tenant's consent to share patterns, which is also what it takes to see them."""

from shared.foundation.scope import Caller
from shared.memory.patterns import queries
from shared.memory.patterns.pattern import Consent
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources


async def read(resources: Resources, caller: Caller) -> Consent:
    """Return whether the tenant has consented."""
    rights.require_area(caller, Area.TENANT, Action.READ)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        since = await queries.consented_at(tx)
    return Consent(consent=since is not None, since=since)


async def change(resources: Resources, caller: Caller, *, is_given: bool) -> Consent:
    """Give the tenant's consent or withdraw it. Only an unbound key may (errors.Forbidden)."""
    rights.require_area(caller, Area.TENANT, Action.WRITE)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        if is_given:
            await queries.consent(tx, caller.key_id)
        else:
            await queries.withdraw(tx)
        since = await queries.consented_at(tx)
    return Consent(consent=since is not None, since=since)
