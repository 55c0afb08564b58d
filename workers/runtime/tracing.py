"""Whose work this is: ids bound to what a task logs, and the traces that it goes on with.

A task goes on with the trace of who rang for it; what is done for a row, with the row's own. A batch
of rows of several traces goes on with none of them and links to each.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog

from shared.foundation.stages import DISPATCH_TASK, Stage
from shared.infra.telemetry import traces
from shared.jobs.job import Job


@contextmanager
def trace_task(current: Any) -> Iterator[None]:
    """Bind the ids of Celery's current task, and tell of it as one span; nothing outside of a task."""
    if not current:
        yield
        return
    request = current.request
    with structlog.contextvars.bound_contextvars(task=current.name, task_id=request.id):
        # Rung every other second and finding nothing, mostly: its spans would bury all others.
        if current.name == DISPATCH_TASK:
            yield
            return
        rung_by = (request.headers or {}).get(traces.HEADER)
        with _traced(current.name, rung_by, task_id=request.id):
            yield


@contextmanager
def trace_jobs(stage: Stage, claims: Sequence[Job]) -> Iterator[None]:
    """Tell of work on rows as one span, and bind their trace if they are all of one."""
    carried = {claim.traceparent for claim in claims if claim.traceparent}
    same = {one.split("-")[1] for one in carried}
    parent = min(carried) if len(same) == 1 else None
    links = [] if parent else sorted(carried)
    with _traced(stage.name, parent, links, rows=len(claims)):
        yield


@contextmanager
def _traced(
    name: str, parent: str | None, links: Sequence[str] = (), **told: traces.Attribute
) -> Iterator[None]:
    with traces.span(name, "consumer", parent, links, **told) as span:
        bound = {"trace_id": span.trace_id} if span.trace_id else {}
        with structlog.contextvars.bound_contextvars(**bound):
            yield
