"""Make the judge of a test trusted at once, as if a worker had measured it."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from shared.foundation import config
from shared.platform.resources import Resources, open_resources
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


def trust_judge_of(settings: config.Settings) -> None:
    """Make the judge of a fleet or a stack trusted, in a thread with a loop of its own."""

    async def trust() -> None:
        async with open_resources(settings) as resources:
            await trust_judge(resources, settings.judge_model or settings.llm_model or "stand-in")

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, trust()).result()
