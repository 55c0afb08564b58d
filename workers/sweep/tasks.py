"""Tasks of the queue `sweep`, which Celery beat sends."""

from dataclasses import asdict
from typing import Any

from workers.app import app, run_on_loop
from workers.sweep import jobs, removals, sweep


@app.task(name="sweep.dispatch_due_jobs")
def dispatch_due_jobs() -> dict[str, int]:
    """Send a wake-up for every stage that has due jobs."""
    return dict(run_on_loop(jobs.dispatch_due_jobs))


@app.task(name="sweep.sweep_once")
def sweep_once() -> dict[str, Any]:
    """Repair and expire what is due, once per interval even if several beats run."""
    return asdict(run_on_loop(sweep.sweep_if_due))


@app.task(name="sweep.finish_removals")
def finish_removals(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Remove from Redis and Qdrant what deletions have left there."""
    return dict(run_on_loop(removals.finish_removals).to_result())
