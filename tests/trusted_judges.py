"""Make the judge of a test trusted at once, as if a worker had measured it."""

from shared.platform.resources import Resources
from shared.verification import calibration, queries, trust
from shared.verification.claim import Judgement
from shared.verification.judge_identity import identity_of


async def trust_judge(resources: Resources, model: str | None = None) -> None:
    """Store that the configured judge knows all labels; `model` is what its replies report."""
    if resources.judge_model is None:
        raise ValueError("the test has no judge")
    pairs = calibration.read()
    measured = trust.measure(pairs, [Judgement(pair.verdict, "") for pair in pairs])
    name = model or await resources.judge_model.name()
    async with resources.postgres.across_tenants() as tx:
        await queries.store(tx, identity_of(resources.judge_model), name, measured)
