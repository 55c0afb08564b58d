"""Tasks of the queue `enrichment`.

`due_jobs`, how many rows the ring was for, is there to be read by people: the rows say what is done.
"""

from typing import Any

from workers.app import app, run_on_loop
from workers.enrichment import enrich


@app.task(name="enrichment.enrich_pending")
def enrich_pending(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Split and rephrase the raw entries that are due."""
    return dict(run_on_loop(enrich.enrich_pending).told())
