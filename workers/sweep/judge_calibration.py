"""Let a worker measure the judge, and forget judges that nobody asks any more."""

from shared.foundation.stages import CALIBRATE_TASK
from shared.platform.resources import Resources
from shared.verification import queries
from shared.verification.judge_identity import identity_of
from shared.verification.trusted_judge import interval_seconds

_KEPT_INTERVALS = 10


async def wake_if_due(resources: Resources) -> bool:
    """Send the task that measures the judge if it is due and nobody does it; tell whether it was sent."""
    interval = interval_seconds(resources.settings)
    async with resources.postgres.across_tenants() as tx:
        await queries.delete_unused(tx, _KEPT_INTERVALS * interval)
        if resources.judge_model is None or resources.settings.judge_calibration_tokens == 0:
            return False
        is_due = await queries.is_due(tx, identity_of(resources.judge_model), interval)
    if is_due:
        resources.publisher.send(CALIBRATE_TASK)
    return is_due
