"""Tasks of the queue `enrichment`.

`due_jobs`, the number of due jobs when the wake-up was sent, and `agent` and `user` are only shown to people.
The code reads the same from the database.
"""

from operator import attrgetter
from typing import Any

from shared.foundation.stages import DreamPass
from workers.app import app, run_on_loop
from workers.enrichment import calibrate_judge as judge_calibration
from workers.enrichment import due_mining, enrich, promote, proposal_judging
from workers.enrichment import mine_facts as mine_facts_pass
from workers.passes import dispatch, run_pass


@app.task(name="enrichment.enrich_pending")
def enrich_pending(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Split and rephrase the raw memories that are due."""
    return dict(run_on_loop(enrich.enrich_pending).to_result())


@app.task(name="enrichment.promote_pending")
def promote_pending(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Promote what is worth keeping of the scratchpads of sessions with a new report."""
    return dict(run_on_loop(promote.promote_pending).to_result())


@app.task(name="enrichment.start_due_mining")
def start_due_mining(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Start runs that mine facts over the scopes that are due."""
    return dict(run_on_loop(due_mining.start_due_mining).to_result())


@app.task(name="enrichment.calibrate_judge")
def calibrate_judge() -> int:
    """Measure how far the judge can be trusted, if it is due."""
    return int(run_on_loop(judge_calibration.calibrate_if_due))


@app.task(name="enrichment.judge_proposals")
def judge_proposals() -> int:
    """Ask the trusted judge about proposals that wait, and that it was not asked about."""
    return int(run_on_loop(proposal_judging.judge_waiting))


@app.task(name="enrichment.dispatch_next_passes")
def dispatch_next_passes(*, due_jobs: int | None = None) -> int:  # noqa: ARG001
    """Send the task of the next pass of each run whose job is due."""
    return int(run_on_loop(dispatch.dispatch_next_passes))


@app.task(name="enrichment.mine_facts")
def mine_facts(*, tenant: str, agent: str, user: str | None, run: str) -> str:  # noqa: ARG001
    """Mine facts out of turns."""
    return str(
        run_on_loop(
            lambda resources: run_pass.run_pass(
                resources, tenant, run, DreamPass.MINE_FACTS, mine_facts_pass.run
            ),
            attrgetter("dream_lease"),
        )
    )
