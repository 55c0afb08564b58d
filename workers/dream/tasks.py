"""Tasks of the queue `dream`. Each pass is a task of its own, so that Flower shows its scope and duration.

The arguments `agent`, `user` and `due_jobs` (how many jobs were due at the wake-up) are only there to be
read in Flower. The code reads the same from the database.
"""

from operator import attrgetter
from typing import Any

from shared.foundation.stages import DreamPass
from workers.app import app, run_on_loop
from workers.dream import due_runs
from workers.dream.passes import PASSES
from workers.passes import dispatch, run_pass


@app.task(name="dream.start_due_runs")
def start_due_runs(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Start runs over the scopes that are due."""
    return dict(run_on_loop(due_runs.start_due_runs).to_result())


@app.task(name="dream.dispatch_next_passes")
def dispatch_next_passes(*, due_jobs: int | None = None) -> int:  # noqa: ARG001
    """Send the task of the next pass of each run whose job is due."""
    return int(run_on_loop(dispatch.dispatch_next_passes))


@app.task(name="dream.deduplicate")
def deduplicate(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Merge memories that differ only in punctuation."""
    return _run_pass(tenant, run, DreamPass.DEDUPLICATE)


@app.task(name="dream.evaluate_sessions")
def evaluate_sessions(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Evaluate sessions that are idle."""
    return _run_pass(tenant, run, DreamPass.EVALUATE_SESSIONS)


@app.task(name="dream.consolidate")
def consolidate(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Merge memories that say the same, and archive ephemeral ones."""
    return _run_pass(tenant, run, DreamPass.CONSOLIDATE)


@app.task(name="dream.mine_anti_patterns")
def mine_anti_patterns(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Derive anti-patterns from corrections."""
    return _run_pass(tenant, run, DreamPass.MINE_ANTI_PATTERNS)


@app.task(name="dream.infer_preferences")
def infer_preferences(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Infer preferences that a user has shown often enough."""
    return _run_pass(tenant, run, DreamPass.INFER_PREFERENCES)


@app.task(name="dream.extract_episodes")
def extract_episodes(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Save what happened as episodes."""
    return _run_pass(tenant, run, DreamPass.EXTRACT_EPISODES)


@app.task(name="dream.extract_entities")
def extract_entities(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Draw the knowledge graph of what was said."""
    return _run_pass(tenant, run, DreamPass.EXTRACT_ENTITIES)


@app.task(name="dream.consolidate_graph")
def consolidate_graph(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Invalidate what of the knowledge graph is stale, doubtful or orphaned."""
    return _run_pass(tenant, run, DreamPass.CONSOLIDATE_GRAPH)


@app.task(name="dream.detect_skill_gaps")
def detect_skill_gaps(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Propose skills for what users ask for again and again."""
    return _run_pass(tenant, run, DreamPass.DETECT_SKILL_GAPS)


@app.task(name="dream.consolidate_skills")
def consolidate_skills(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Propose to join skills that belong together."""
    return _run_pass(tenant, run, DreamPass.CONSOLIDATE_SKILLS)


@app.task(name="dream.optimise_skills")
def optimise_skills(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Propose better wordings of skills that were used where something went wrong."""
    return _run_pass(tenant, run, DreamPass.OPTIMISE_SKILLS)


def _run_pass(tenant: str, run_id: str, name: DreamPass) -> str:
    return str(
        run_on_loop(
            lambda resources: run_pass.run_pass(resources, tenant, run_id, name, PASSES[name]),
            attrgetter("dream_lease"),
        )
    )
