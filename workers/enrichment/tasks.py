"""Tasks of the queue `enrichment`."""

from shared.stages import ENRICH
from workers import claims
from workers.app import app, run
from workers.enrichment import enrich


@app.task(name="enrichment.enrich_pending")
def enrich_pending() -> int:
    """Split and rephrase the raw entries that are due."""
    return int(run(lambda resources: claims.drain(resources, ENRICH, enrich.enrich_batch)))
