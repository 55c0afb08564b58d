"""Tasks of the queue `sweep`, rung by beat."""

from dataclasses import asdict
from typing import Any

from workers.app import app, run
from workers.sweep import jobs, sweep


@app.task(name="sweep.hand_on")
def hand_on() -> dict[str, int]:
    """Ring for every stage that has something due."""
    return dict(run(jobs.hand_on))


@app.task(name="sweep.sweep_once")
def sweep_once() -> dict[str, Any]:
    """Mend what is unfinished, expired or astray, once for all clocks that ring."""
    return asdict(run(sweep.follow_ring))
