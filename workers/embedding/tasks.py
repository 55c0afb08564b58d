"""Tasks of the queue `embedding`."""

from shared.stages import EMBED, INDEX
from workers import claims
from workers.app import app, run
from workers.embedding import embed, index


@app.task(name="embedding.index_pending")
def index_pending() -> int:
    """Write the keyword points that are due."""
    return int(run(lambda resources: claims.drain(resources, INDEX, index.index_batch)))


@app.task(name="embedding.embed_pending")
def embed_pending() -> int:
    """Add the vectors that are due."""
    return int(run(lambda resources: claims.drain(resources, EMBED, embed.embed_batch)))
