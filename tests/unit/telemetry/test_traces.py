"""Traces are off by default, and continue the traces of requests and jobs."""

import sys
from collections.abc import Iterator

import pytest

from shared.foundation import config, errors
from shared.foundation.stages import EMBED, RecordKind
from shared.infra.telemetry import traces
from shared.jobs.job import Job
from tests.standins.collector import Collector, Span
from workers.runtime import tracing

TRACE, OTHER_TRACE = "a" * 32, "b" * 32


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        traces.set_up(_settings(collector.url), "worker")
        yield collector
        traces.set_up(_settings(None), "worker")


def _settings(endpoint: str | None) -> config.Settings:
    return config.load(redis_url="redis://x", otlp_endpoint=endpoint)


def _traceparent(trace: str, span: str = "1" * 16) -> str:
    return f"00-{trace}-{span}-01"


def _sent(collector: Collector) -> list[Span]:
    traces.flush()
    return collector.spans


def test_without_an_endpoint_nothing_is_traced() -> None:
    traces.set_up(_settings(None), "worker")
    with traces.span("work", "server", _traceparent(TRACE)) as span:
        assert traces.traceparent() is None
        assert span.trace_id is None


def test_an_endpoint_without_the_extra_is_an_error_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "shared.infra.telemetry.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(errors.Misconfigured, match=r"LOCI_OTLP_ENDPOINT.*loci\[telemetry\]"):
        traces.set_up(_settings("http://127.0.0.1:1"), "worker")


def test_a_failure_is_recorded_by_its_class_and_never_by_its_message(collector: Collector) -> None:
    with pytest.raises(ValueError, match="secret"), traces.span("work"):
        raise ValueError("the secret")
    [span] = _sent(collector)
    assert span.attributes == {"error.type": "ValueError"}
    assert b"secret" not in collector.sent


def test_an_invalid_traceparent_starts_a_new_trace(collector: Collector) -> None:
    for invalid in ("", "00-x-y-01", "00-" + "0" * 32 + "-" + "1" * 16 + "-01"):
        with traces.span("work", "server", invalid):
            pass
    assert [span.parent for span in _sent(collector)] == ["", "", ""]


@pytest.mark.parametrize(
    ("traceparents", "expected"),
    [
        ([_traceparent(TRACE)] * 3, (TRACE, ())),
        ([_traceparent(TRACE), None], (TRACE, ())),
        ([_traceparent(TRACE), _traceparent(OTHER_TRACE)], (None, (TRACE, OTHER_TRACE))),
    ],
)
def test_jobs_of_one_trace_continue_it_and_jobs_of_several_link_to_each(
    collector: Collector, traceparents: list[str | None], expected: tuple[str | None, tuple[str, ...]]
) -> None:
    jobs = [
        Job(1, "t", RecordKind.MEMORY, "r", 1, 1, None, traceparent=traceparent)
        for traceparent in traceparents
    ]
    with tracing.trace_jobs(EMBED, jobs):
        pass
    [span] = _sent(collector)
    assert (span.trace if span.parent else None, span.links) == expected
    assert span.attributes["rows"] == str(len(jobs))


def test_a_span_whose_parent_has_the_current_trace_is_a_child_of_the_current_span(
    collector: Collector,
) -> None:
    with traces.span("task", "consumer", _traceparent(TRACE)), traces.span("row", parent=_traceparent(TRACE)):
        pass
    row, task = _sent(collector)
    assert (task.parent, row.parent) == ("1" * 16, task.id)
