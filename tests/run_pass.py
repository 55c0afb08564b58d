"""Run a pass by its name, as the task of its queue does."""

from shared.foundation.stages import DreamPass
from shared.platform.resources import Resources
from workers.dream import passes
from workers.enrichment import mine_facts
from workers.passes import run_pass as passes_of_runs

PASSES = {**passes.PASSES, DreamPass.MINE_FACTS: mine_facts.run}


async def run_pass(resources: Resources, tenant: str, run_id: str, name: DreamPass) -> str:
    """Run a pass of a run, and return the result of its task."""
    return await passes_of_runs.run_pass(resources, tenant, run_id, name, PASSES[name])
