"""Tasks of the queue `sweep`, rung by beat."""

from dataclasses import asdict
from typing import Any

from workers.app import app, run_on_loop
from workers.sweep import jobs, sweep


@app.task(name="sweep.dispatch_due_jobs")
def dispatch_due_jobs() -> dict[str, int]:
    """Ring for every stage that has something due."""
    return dict(run_on_loop(jobs.dispatch_due_jobs))


@app.task(name="sweep.sweep_once")
def sweep_once() -> dict[str, Any]:
    """Mend what is unfinished, expired or astray, once for all clocks that ring."""
    return asdict(run_on_loop(sweep.sweep_if_due))
