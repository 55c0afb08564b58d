"""Tasks of the queue `dream`. A pass is a task of its own, so that Flower shows which, for whom, how long.

`agent`, `user` and `due` (how many rows the ring was for) are there to be read by people: the rows say
the same to the code.
"""

from operator import attrgetter
from typing import Any

from shared.foundation.stages import PassName
from workers.app import app, run
from workers.dream import dispatch, run_pass, start_due_runs


@app.task(name="dream.begin_due")
def begin_due(*, due: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Begin runs for scopes whose time has come."""
    return dict(run(start_due_runs.begin_due).told())


@app.task(name="dream.go_on")
def go_on(*, due: int | None = None) -> int:  # noqa: ARG001
    """Ring for the next pass of each run that waits."""
    return int(run(dispatch.go_on))


@app.task(name="dream.fold_duplicates")
def fold_duplicates(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Fold entries that differ in spelling only."""
    return _do(tenant, run, PassName.FOLD)


@app.task(name="dream.evaluate_sessions")
def evaluate_sessions(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Judge sessions that have come to rest."""
    return _do(tenant, run, PassName.EVALUATE)


@app.task(name="dream.consolidate")
def consolidate(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Merge what says the same, archive what was fleeting."""
    return _do(tenant, run, PassName.CONSOLIDATE)


@app.task(name="dream.mine_anti_patterns")
def mine_anti_patterns(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Learn from corrections what not to do again."""
    return _do(tenant, run, PassName.ANTI_PATTERNS)


@app.task(name="dream.infer_preferences")
def infer_preferences(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Infer what a user prefers from what they said often enough."""
    return _do(tenant, run, PassName.PREFERENCES)


@app.task(name="dream.extract_episodes")
def extract_episodes(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Keep what happened as episodes."""
    return _do(tenant, run, PassName.EPISODES)


def _do(tenant: str, run_id: str, name: PassName) -> str:
    return str(
        run(lambda resources: run_pass.do_pass(resources, tenant, run_id, name), attrgetter("dream_lease"))
    )
