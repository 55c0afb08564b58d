"""Bind ids to the logs of tasks and jobs, and continue their traces.

A task continues the trace of whoever sent it. The work on a job continues the trace of the job. A batch
of jobs of several traces continues none of them, and links to each.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog

from shared.foundation.stages import DISPATCH_TASK, Stage
from shared.infra.telemetry import traces
from shared.infra.telemetry.span import HEADER, Attribute
from shared.jobs.job import Job


@contextmanager
def trace_task(current: Any) -> Iterator[None]:
    """Bind the ids of Celery's current task, and record it as one span. Do nothing outside of a task."""
    if not current:
        yield
        return
    request = current.request
    with structlog.contextvars.bound_contextvars(task=current.name, task_id=request.id):
        # This task runs every few seconds and mostly finds nothing: its spans would hide all others.
        if current.name == DISPATCH_TASK:
            yield
            return
        parent = (request.headers or {}).get(HEADER)
        with _span(current.name, parent, task_id=request.id):
            yield


@contextmanager
def trace_jobs(stage: Stage, jobs: Sequence[Job]) -> Iterator[None]:
    """Record the work on jobs as one span, and bind their trace if they share one."""
    parents = {job.traceparent for job in jobs if job.traceparent}
    trace_ids = {traceparent.split("-")[1] for traceparent in parents}
    parent = min(parents) if len(trace_ids) == 1 else None
    links = [] if parent else sorted(parents)
    with _span(stage.name, parent, links, rows=len(jobs)):
        yield


@contextmanager
def _span(
    name: str, parent: str | None, links: Sequence[str] = (), **attributes: Attribute
) -> Iterator[None]:
    with traces.span(name, "consumer", parent, links, **attributes) as span:
        trace_id = {"trace_id": span.trace_id} if span.trace_id else {}
        with structlog.contextvars.bound_contextvars(**trace_id):
            yield
