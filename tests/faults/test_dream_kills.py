"""A worker killed in mid-night leaves the scope as before or as after, and the run goes on (DR1)."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httpx

from tests.faults.processes import Fleet
from tests.journey.agent import Agent, Json, until
from tests.standins.behaviours import Reply, Slow
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT

KILLS = 4
FACTS = (
    "Ada lives in Lyon.",
    "Ada's home is Lyon.",
    "Ada is on the tram right now.",
    "Ada plays the oboe.",
    "The invoice run starts on the 3rd.",
)


async def test_a_worker_killed_while_the_model_is_asked_leaves_the_old_or_the_new_state_and_the_run_is_done_once(
    make_fleet: Callable[..., Fleet], tenant: str, models: ModelServer
) -> None:
    fleet = make_fleet(
        llm_base_url=models.url, llm_model="m", dream_lease=2, dream_enabled=False, job_max_attempts=100
    )
    fleet.serve()
    fleet.start("beat")
    async with await fleet.client(tenant) as client:
        agent = Agent(client, tenant)
        ids = [(await agent.save(one, enrich=False))["id"] for one in FACTS]
        merged = {"content": "Ada lives in Lyon; it is her home.", "sourceIds": ids[:2]}
        plan = {"toDelete": [{"id": ids[2], "reason": "ephemeral"}], "toSave": [merged]}
        models.chat_default = Slow(0.2, Reply(json.dumps(plan)))
        body = {"passes": ["deduplicate", "consolidate"]}
        run = await agent.ask("POST", "/v1/dreams", json=body, status=HTTPStatus.CREATED)
        for _ in range(KILLS):
            worker, seen = fleet.start("work"), len(models.chat_calls)
            await asyncio.to_thread(models.wait_for_calls, seen + 1, 30, CHAT)
            worker.kill()
            assert await live(client) == set(ids), "killed before the answer: nothing has changed"
        fleet.start("work")
        done = await until(lambda: ended(agent, run["id"]), within=60)
        diff = (await agent.ask("GET", f"/v1/dreams/{run['id']}/diff"))["results"]
        after = await live(client)

    assert done is not None
    assert [one["state"] for one in done["passes"]] == ["skipped", "done"]
    assert Counter(one["action"] for one in diff) == {"archived": 3, "created": 1}
    assert set(ids[3:]) < after
    assert len(after) == 3
    assert len(models.chat_calls) == KILLS + 1


async def ended(agent: Agent, run_id: str) -> Json | None:
    run: Json = await agent.ask("GET", f"/v1/dreams/{run_id}")
    return run if run["state"] == "done" else None


async def live(client: httpx.AsyncClient) -> set[str]:
    answer: dict[str, Any] = (await client.get("/v1/memories")).json()
    return {one["id"] for one in answer["results"]}
