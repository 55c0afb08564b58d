"""Tasks of the queue `summary`.

`due_jobs` is the number of due jobs when the wake-up was sent. It is only shown to people: the task
itself claims whatever is due.
"""

from typing import Any

from shared.foundation.stages import EXPIRE_WINDOW
from workers.app import app, run_on_loop
from workers.runtime import drain as job_drain
from workers.summary import expire_windows as windows
from workers.summary import summarize
from workers.summary import summarize_skills as skills


@app.task(name="summary.summarize_pending")
def summarize_pending(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Summarise the oldest turns of the sessions that are due."""
    return dict(run_on_loop(summarize.summarize_pending).to_result())


@app.task(name="summary.expire_windows")
def expire_windows(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Make summaries due of the sessions that have become idle."""
    return dict(
        run_on_loop(
            lambda resources: job_drain.drain(resources, EXPIRE_WINDOW, windows.expire_windows)
        ).to_result()
    )


@app.task(name="summary.summarize_skills")
def summarize_skills(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Write the summaries of skills that came without one."""
    return dict(run_on_loop(skills.summarize_skills).to_result())
