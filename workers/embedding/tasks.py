"""Tasks of the queue `embedding`.

`due_jobs` is the number of due jobs when the wake-up was sent. It is only shown to people: the task
itself claims whatever is due.
"""

from typing import Any

from shared.foundation.stages import EMBED, INDEX
from workers.app import app, run_on_loop
from workers.embedding import embed, index
from workers.runtime import drain as job_drain


@app.task(name="embedding.index_pending")
def index_pending(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Write the keyword points that are due."""
    return dict(
        run_on_loop(lambda resources: job_drain.drain(resources, INDEX, index.index_batch)).to_result()
    )


@app.task(name="embedding.embed_pending")
def embed_pending(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Add the embeddings that are due."""
    return dict(
        run_on_loop(lambda resources: job_drain.drain(resources, EMBED, embed.embed_batch)).to_result()
    )
