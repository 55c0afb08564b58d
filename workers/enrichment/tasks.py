"""Tasks of the queue `enrichment`.

`due_jobs` is the number of due jobs when the wake-up was sent. It is only shown to people: the task
itself claims whatever is due.
"""

from typing import Any

from workers.app import app, run_on_loop
from workers.enrichment import enrich


@app.task(name="enrichment.enrich_pending")
def enrich_pending(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Split and rephrase the raw memories that are due."""
    return dict(run_on_loop(enrich.enrich_pending).to_result())
