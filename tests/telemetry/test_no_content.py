"""Issue 5, point 4: no content of memories in logs, traces or tasks, whatever is written and fails."""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import httpx

from tests.isolation.asking import ask
from tests.isolation.cases import CASES, Call
from tests.isolation.ids import Ids, made_up
from tests.journey.agent import Agent, until
from tests.journey.house import TestStack
from tests.standins.behaviours import EmptyChoices, Fenced, Refusal, Reply, Status
from tests.standins.collector import Collector
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

CANARY = "zanzibarquokka"
FREE = {"content", "message", "value", "summary", "text", "document", "system", "query", "label"}
"""Fields that hold what somebody says; all else that is sent is a name, a kind or a number."""
# What a model can do wrong while it quotes what it was asked.
FAILURES: list[Behaviour] = [
    Status(500, message=f"could not read: {CANARY}"),
    Status(400, message=f"no such thing: {CANARY}"),
    Reply(f"I'd rather talk about {CANARY}."),
    Reply(f'[{{"content": 7, "category": "{CANARY}"}}]'),
    Refusal(f"I will not keep {CANARY}."),
    Fenced(f"{CANARY} {{"),
    EmptyChoices(),
]


async def test_no_written_content_appears_in_a_log_a_span_or_a_task(
    talkative: TestStack, collector: Collector, model: ModelServer
) -> None:
    async with talkative.agent() as agent:
        written = await _write_everywhere(agent)
        await agent.settled()
        for failure in FAILURES:
            await _fail(agent, model, failure)
        for failure in FAILURES[:3]:
            await _dream(agent, model, failure)
    assert written == {route for route in CASES if _may_carry(route)}
    assert CANARY in "".join(call.prompt for call in model.chat_calls)
    for name, told in (await _all_told(talkative, collector)).items():
        assert told, name
        assert CANARY not in told.lower(), told[max(0, told.lower().index(CANARY) - 600) :][:700]


async def _write_everywhere(agent: Agent) -> set[str]:
    """Send the canary by every route that takes some text; return those that took it."""
    ids = replace(made_up(), content=f"The {CANARY} sleeps.")
    ids = replace(ids, memory=(await agent.save(f"Another {CANARY} sleeps.", enrich=False))["id"])
    taken: set[str] = set()
    for route in sorted(CASES, key=_order):
        for call in CASES[route](ids):
            spiced = _spiced(call)
            answer = await ask(agent.client, route, spiced)
            assert answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, (route, answer.text)
            if answer.is_success and _carries(spiced):
                taken.add(route)
    await _unforeseeable(agent, ids)
    return taken


async def _unforeseeable(agent: Agent, ids: Ids) -> None:
    """Send it also where it is refused: as a wrong type, an unknown field, and no JSON at all."""
    for body in ({"content": [CANARY]}, {CANARY: 1}, {"content": CANARY + "\x00"}):
        answer = await agent.client.post("/v1/memories", json=body)
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    path = f"/v1/sessions/{ids.session}/turns"
    await agent.client.post(path, content=f"{{{CANARY}".encode())


def _order(route: str) -> tuple[bool, bool, str]:
    """Sessions first, for others write into them; what deletes comes last."""
    return route.startswith("DELETE"), route != "POST /v1/sessions", route


def _may_carry(route: str) -> bool:
    return any(_carries(_spiced(call)) for call in CASES[route](made_up()))


def _spiced(call: Call) -> Call:
    content = None if call.content is None else call.content.replace(b"mine", CANARY.encode())
    return replace(call, body=_with_canary(call.body), content=content)


def _with_canary(body: Any, *, free: bool = False) -> Any:
    if isinstance(body, list):
        return [_with_canary(one, free=free) for one in body]
    if isinstance(body, dict):
        return {name: _with_canary(value, free=free or name in FREE) for name, value in body.items()}
    return f"{body} {CANARY}" if free and isinstance(body, str) else body


def _carries(call: Call) -> bool:
    return CANARY in str(call.body) or CANARY.encode() in (call.content or b"")


async def _fail(agent: Agent, model: ModelServer, failure: Behaviour) -> None:
    """Let enrichment and embedding meet one failure of the model, as often as it is asked."""
    model.chat_replies.extend([failure] * 4)
    model.embedding_replies.extend([failure] * 2)
    for number in range(2):
        await agent.save(f"Said {number} in {failure}: {CANARY}.")
    await agent.settled(60)
    model.chat_replies.clear()
    model.embedding_replies.clear()


async def _dream(agent: Agent, model: ModelServer, failure: Behaviour) -> None:
    """Let every pass of a dream meet one failure of the model."""
    normal, model.chat_default = model.chat_default, failure
    try:
        run = await agent.ask("POST", "/v1/dreams", json={}, status=HTTPStatus.CREATED)
        await until(lambda: _over(agent, run["id"]), 60)
    finally:
        model.chat_default = normal


async def _over(agent: Agent, run_id: str) -> bool:
    return bool((await agent.ask("GET", f"/v1/dreams/{run_id}"))["state"] != "running")


async def _all_told(house: TestStack, collector: Collector) -> dict[str, str]:
    logs = house.running.data_dir / "logs"
    found = {path.name: path.read_text(errors="replace") for path in logs.glob("*.log*")}
    told = {name: text for name, text in found.items() if text}
    assert told.keys() >= {"gateway.log", "workers.log", "flower.log"}
    return told | {"spans": collector.sent.decode(errors="replace"), "tasks": await _tasks(house)}


async def _tasks(house: TestStack) -> str:
    """Return every task with its arguments and outcome, as Flower shows it."""
    running = house.running
    assert running.flower_password_file is not None
    login = (running.flower_user, running.flower_password_file.read_text().strip())
    async with httpx.AsyncClient(base_url=running.flower_url, trust_env=False, auth=login) as flower:
        return (await flower.get("/api/tasks")).text
