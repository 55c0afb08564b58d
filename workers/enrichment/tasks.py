"""Tasks of the queue `enrichment`."""

from workers.app import app, run
from workers.enrichment import enrich


@app.task(name="enrichment.enrich_pending")
def enrich_pending() -> int:
    """Split and rephrase the raw entries that are due."""
    return int(run(enrich.enrich_all))
