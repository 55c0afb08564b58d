"""Tasks of the queue `dream`. A pass is a task of its own, so that Flower shows which, for whom, how long.

`agent`, `user` and `due_jobs` (how many rows the ring was for) are there to be read by people: the rows say
the same to the code.
"""

from operator import attrgetter
from typing import Any

from shared.foundation.stages import DreamPass
from workers.app import app, run_on_loop
from workers.dream import dispatch, due_runs, run_pass


@app.task(name="dream.start_due_runs")
def start_due_runs(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Begin runs for scopes whose time has come."""
    return dict(run_on_loop(due_runs.start_due_runs).to_result())


@app.task(name="dream.dispatch_next_passes")
def dispatch_next_passes(*, due_jobs: int | None = None) -> int:  # noqa: ARG001
    """Ring for the next pass of each run that waits."""
    return int(run_on_loop(dispatch.dispatch_next_passes))


@app.task(name="dream.deduplicate")
def deduplicate(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Fold entries that differ in spelling only."""
    return _do(tenant, run, DreamPass.DEDUPLICATE)


@app.task(name="dream.evaluate_sessions")
def evaluate_sessions(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Judge sessions that have come to rest."""
    return _do(tenant, run, DreamPass.EVALUATE_SESSIONS)


@app.task(name="dream.consolidate")
def consolidate(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Merge what says the same, archive what was fleeting."""
    return _do(tenant, run, DreamPass.CONSOLIDATE)


@app.task(name="dream.mine_anti_patterns")
def mine_anti_patterns(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Learn from corrections what not to do again."""
    return _do(tenant, run, DreamPass.MINE_ANTI_PATTERNS)


@app.task(name="dream.infer_preferences")
def infer_preferences(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Infer what a user prefers from what they said often enough."""
    return _do(tenant, run, DreamPass.INFER_PREFERENCES)


@app.task(name="dream.extract_episodes")
def extract_episodes(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Keep what happened as episodes."""
    return _do(tenant, run, DreamPass.EXTRACT_EPISODES)


def _do(tenant: str, run_id: str, name: DreamPass) -> str:
    return str(
        run_on_loop(
            lambda resources: run_pass.run_pass(resources, tenant, run_id, name), attrgetter("dream_lease")
        )
    )
