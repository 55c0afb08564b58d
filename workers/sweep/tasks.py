"""Tasks of the queue `sweep`, which Celery beat sends."""

from dataclasses import asdict
from typing import Any

from workers.app import app, run_on_loop
from workers.sweep import jobs, sweep


@app.task(name="sweep.dispatch_due_jobs")
def dispatch_due_jobs() -> dict[str, int]:
    """Send a wake-up for every stage that has due jobs."""
    return dict(run_on_loop(jobs.dispatch_due_jobs))


@app.task(name="sweep.sweep_once")
def sweep_once() -> dict[str, Any]:
    """Repair and expire what is due, once per interval even if several beats run."""
    return asdict(run_on_loop(sweep.sweep_if_due))
