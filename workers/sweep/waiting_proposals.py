"""Let a worker ask the judge about proposals that wait: they were made before it was trusted."""

from shared.foundation.stages import JUDGE_PROPOSALS_TASK
from shared.memory.proposals import queries
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources
from shared.verification.trusted_judge import find_trusted_judge


async def wake_if_due(resources: Resources) -> bool:
    """Send the task if a trusted judge was not asked about all proposals; tell whether it was sent."""
    judge = await find_trusted_judge(resources)
    if judge is None:
        return False
    async with resources.postgres.across_tenants() as fleet_tx:
        tenants = await auth_queries.list_tenants(fleet_tx)
    for tenant in tenants:
        async with resources.postgres.for_tenant(tenant) as tx:
            if await queries.has_due(tx, judge.name):
                resources.publisher.send(JUDGE_PROPOSALS_TASK)
                return True
    return False
