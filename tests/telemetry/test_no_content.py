"""No content of memories appears in logs, traces or tasks, whatever is written and whatever fails."""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import httpx

from tests.agent import Agent, wait_until
from tests.isolation.asking import send
from tests.isolation.calls import Call
from tests.isolation.cases import CASES
from tests.isolation.ids import Ids, unused_ids
from tests.journey.stack import ProcessStack
from tests.standins.behaviours import EmptyChoices, Fenced, Refusal, Reply, Status
from tests.standins.collector import Collector
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

SECRET = "zanzibarquokka"
FREE_TEXT_FIELDS = {"content", "message", "value", "summary", "text", "document", "system", "query", "label"}
FREE_TEXT_FIELDS |= {"user_query", "slots", "parameters"}
"""Fields with free text. All other fields are names, kinds and numbers."""
# Failures of a model that quote the request.
FAILURES: list[Behaviour] = [
    Status(500, message=f"could not read: {SECRET}"),
    Status(400, message=f"no such thing: {SECRET}"),
    Reply(f"I'd rather talk about {SECRET}."),
    Reply(f'[{{"content": 7, "category": "{SECRET}"}}]'),
    Refusal(f"I will not keep {SECRET}."),
    Fenced(f"{SECRET} {{"),
    EmptyChoices(),
]


async def test_no_written_content_appears_in_a_log_a_span_or_a_task(
    verbose_stack: ProcessStack, collector: Collector, model: ModelServer
) -> None:
    async with verbose_stack.agent() as agent:
        accepted = await _write_everywhere(agent)
        await agent.wait_until_idle()
        for failure in FAILURES:
            await _fail(agent, model, failure)
        for failure in (FAILURES[2], FAILURES[3], FAILURES[0]):
            await _dream(agent, model, failure)
    assert accepted == {route for route in CASES if _may_contain_secret(route)}
    assert SECRET in "".join(call.prompt for call in model.chat_calls)
    for name, text in (await _all_reports(verbose_stack, collector)).items():
        assert text, name
        assert SECRET not in text.lower(), text[max(0, text.lower().index(SECRET) - 600) :][:700]


async def _write_everywhere(agent: Agent) -> set[str]:
    """Send the secret text to every route with free text; return the routes that accepted it."""
    ids = replace(unused_ids(), content=f"The {SECRET} sleeps.")
    ids = replace(ids, memory=(await agent.save(f"Another {SECRET} sleeps.", enrich=False))["id"])
    accepted: set[str] = set()
    for route in sorted(CASES, key=_order):
        for call in CASES[route](ids):
            secret_call = _call_with_secret(call)
            response = await send(agent.client, route, secret_call)
            assert response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, (route, response.text)
            if response.is_success and _contains_secret(secret_call):
                accepted.add(route)
    await _send_invalid_requests(agent, ids)
    await _send_by_mcp(agent)
    return accepted


async def _send_by_mcp(agent: Agent) -> None:
    """Send the secret text as an argument, as a name, as a method, and outside of JSON-RPC."""
    call = {"name": "memory_add", "arguments": {"content": SECRET}}
    bodies: list[dict[str, Any]] = [
        {"method": "tools/call", "params": call},
        {"method": "tools/call", "params": call | {"arguments": SECRET}},
        {"method": "tools/call", "params": call | {"name": SECRET}},
        {"method": SECRET},
    ]
    headers = {"accept": "application/json, text/event-stream"}
    for body in bodies:
        message = {"jsonrpc": "2.0", "id": 1, **body}
        for version in ("2025-06-18", "2026-07-28"):
            sent = headers | {"mcp-protocol-version": version}
            response = await agent.client.post("/mcp", json=message, headers=sent)
            assert response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, response.text
    await agent.client.post("/mcp", content=SECRET.encode(), headers=headers)


async def _send_invalid_requests(agent: Agent, ids: Ids) -> None:
    """Send the secret text where it is refused: as a wrong type, in an unknown field and outside of JSON."""
    for body in ({"content": [SECRET]}, {SECRET: 1}, {"content": SECRET + "\x00"}):
        response = await agent.client.post("/v1/memories", json=body)
        assert response.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    path = f"/v1/sessions/{ids.session}/turns"
    await agent.client.post(path, content=f"{{{SECRET}".encode())


def _order(route: str) -> tuple[bool, bool, bool, str]:
    """Return the sort key of a route: sessions, what creates something, what changes it, and deletions."""
    is_creation = route.startswith("POST")
    deletes = route.startswith(("DELETE", "POST /v1/tools/"))  # some tools do
    return deletes, route != "POST /v1/sessions", not is_creation, route


def _may_contain_secret(route: str) -> bool:
    return any(_contains_secret(_call_with_secret(call)) for call in CASES[route](unused_ids()))


def _call_with_secret(call: Call) -> Call:
    content = None if call.content is None else call.content.replace(b"mine", SECRET.encode())
    return replace(call, body=_add_secret(call.body), content=content)


def _add_secret(body: Any, *, free: bool = False) -> Any:
    if isinstance(body, list):
        return [_add_secret(item, free=free) for item in body]
    if isinstance(body, dict):
        return {
            name: _add_secret(value, free=free or name in FREE_TEXT_FIELDS) for name, value in body.items()
        }
    return f"{body} {SECRET}" if free and isinstance(body, str) else body


def _contains_secret(call: Call) -> bool:
    return SECRET in str(call.body) or SECRET.encode() in (call.content or b"")


async def _fail(agent: Agent, model: ModelServer, failure: Behaviour) -> None:
    """Let enrichment and embedding fail at every call of the model."""
    model.chat_replies.extend([failure] * 4)
    model.embedding_replies.extend([failure] * 2)
    for number in range(2):
        await agent.save(f"Memory {number} for {failure}: {SECRET}.")
    await agent.wait_until_idle(60)
    model.chat_replies.clear()
    model.embedding_replies.clear()


async def _dream(agent: Agent, model: ModelServer, failure: Behaviour) -> None:
    """Let every pass of a dream run fail; one whose model is away waits and is not waited for."""
    normal, model.chat_default = model.chat_default, failure
    call_count = len(model.chat_calls)

    async def has_failed() -> bool:
        state = (await agent.request("GET", f"/v1/dreams/{run['id']}"))["state"]
        return state != "running" or (isinstance(failure, Status) and len(model.chat_calls) > call_count + 1)

    try:
        run = await agent.request("POST", "/v1/dreams", json={}, status=HTTPStatus.CREATED)
        await wait_until(has_failed, 60)
    finally:
        model.chat_default = normal


async def _all_reports(stack: ProcessStack, collector: Collector) -> dict[str, str]:
    paths = (stack.running.data_dir / "logs").glob("*.log*")
    texts = {path.name: path.read_text(errors="replace") for path in paths}
    logs = {name: text for name, text in texts.items() if text}
    assert logs.keys() >= {"gateway.log", "workers.log", "flower.log"}
    return logs | {"spans": collector.sent.decode(errors="replace"), "tasks": await _tasks(stack)}


async def _tasks(stack: ProcessStack) -> str:
    """Return every task with its arguments and result, as Flower reports it."""
    running = stack.running
    assert running.flower_password_file is not None
    login = (running.flower_user, running.flower_password_file.read_text().strip())
    async with httpx.AsyncClient(base_url=running.flower_url, trust_env=False, auth=login) as flower:
        return (await flower.get("/api/tasks")).text
