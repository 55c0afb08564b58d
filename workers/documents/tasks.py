"""Tasks of the queue `documents`.

`due_jobs` is the number of due jobs when the wake-up was sent. It is only shown to people: the task
itself claims whatever is due.
"""

from typing import Any

from shared.foundation.stages import PARSE_DOCUMENT, PUBLISH_DOCUMENT
from workers.app import app, run_on_loop
from workers.documents import process, publish
from workers.runtime import drain as job_drain


@app.task(name="documents.parse_pending")
def parse_pending(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Parse the files that are due, and store their text in chunks."""
    return dict(
        run_on_loop(
            lambda resources: job_drain.drain(resources, PARSE_DOCUMENT, process.process_batch)
        ).to_result()
    )


@app.task(name="documents.publish_pending")
def publish_pending(*, due_jobs: int | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Make the versions searchable whose chunks the index has by now."""
    return dict(
        run_on_loop(
            lambda resources: job_drain.drain(resources, PUBLISH_DOCUMENT, publish.publish_batch)
        ).to_result()
    )
