"""One trace leads from a request to the call of a model, and the logs name it."""

import json
from secrets import token_hex

from tests.agent import wait_until
from tests.journey.stack import ProcessStack
from tests.standins.behaviours import Status
from tests.standins.collector import Collector, Span
from tests.standins.models import ModelServer

SAVE = "POST /v1/memories"
HOPS = {
    (SAVE, "loci-gateway"),
    ("publish enrichment.enrich_pending", "loci-gateway"),
    ("enrichment.enrich_pending", "loci-worker"),
    ("enrich", "loci-worker"),
    ("POST chat/completions", "loci-worker"),
    ("embed", "loci-worker"),
    ("POST embeddings", "loci-worker"),
}


async def test_a_save_and_its_later_processing_are_one_trace_up_to_the_model(
    verbose_stack: ProcessStack, collector: Collector, model: ModelServer
) -> None:
    trace, sender = token_hex(16), token_hex(8)
    headers = {"traceparent": f"00-{trace}-{sender}-01", "x-request-id": "order-7"}
    async with verbose_stack.agent() as agent:
        body = {"content": "The lighthouse is white. The keeper is called Ada."}
        response = await agent.client.post("/v1/memories", json=body, headers=headers)
        await agent.wait_until_idle()
    assert response.headers["x-request-id"] == "order-7"

    async def arrived() -> bool:
        return {(span.name, span.service) for span in collector.of(trace)} >= HOPS

    await wait_until(arrived)
    spans = {span.id: span for span in collector.of(trace)}
    [model_call] = [span for span in spans.values() if span.name == "POST chat/completions"]
    assert _path_to_root(model_call, spans)[-1] == SAVE
    assert _path_to_root(model_call, spans)[:2] == ["POST chat/completions", "enrich"]
    assert next(span for span in spans.values() if span.name == SAVE).parent == sender
    traceparents = [call.headers["traceparent"] for call in model.chat_calls if "lighthouse" in call.prompt]
    assert traceparents == [f"00-{trace}-{model_call.id}-01"]


def _path_to_root(span: Span, spans: dict[str, Span]) -> list[str]:
    path = [span.name]
    while span.parent in spans:
        span = spans[span.parent]
        path.append(span.name)
    return path


async def test_a_batch_of_jobs_from_several_traces_links_to_each_of_them(
    verbose_stack: ProcessStack, collector: Collector
) -> None:
    traces = {token_hex(16) for _ in range(8)}
    async with verbose_stack.agent() as agent:
        for trace in traces:
            headers = {"traceparent": f"00-{trace}-{token_hex(8)}-01"}
            body = {"content": f"Lamp {trace} is lit.", "enrich": False}
            await agent.client.post("/v1/memories", json=body, headers=headers)
        await agent.wait_until_idle()

    def embedded() -> set[str]:
        embed_spans = [span for span in collector.spans if span.name == "embed"]
        return {trace for span in embed_spans for trace in (span.trace, *span.links)}

    async def arrived() -> bool:
        return traces <= embedded()

    await wait_until(arrived)


async def test_worker_logs_are_json_and_name_the_task_and_the_trace(
    verbose_stack: ProcessStack, model: ModelServer
) -> None:
    trace = token_hex(16)
    async with verbose_stack.agent() as agent:
        headers = {"traceparent": f"00-{trace}-{token_hex(8)}-01"}
        model.chat_replies.append(Status(500))
        body = {"content": "No answer to this one."}
        await agent.client.post("/v1/memories", json=body, headers=headers)
        await agent.wait_until_idle()
    lines = (verbose_stack.running.data_dir / "logs" / "workers.log").read_text().splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    [event] = [
        event for event in events if event.get("trace_id") == trace and event["event"] == "jobs_rescheduled"
    ]
    assert event["task"] == "enrichment.enrich_pending"
    assert event["task_id"]
    assert event["level"] == "warning"
