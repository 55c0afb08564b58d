"""DR1: a worker that is killed during a run leaves the old or the new state, and the run continues."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import httpx

from tests.agent import Agent
from tests.ended_runs import wait_until_ended
from tests.faults.processes import Fleet
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


async def test_a_worker_killed_while_the_model_is_asked_leaves_the_old_or_the_new_state(
    make_fleet: Callable[..., Fleet], tenant: str, models: ModelServer
) -> None:
    fleet = make_fleet(
        llm_base_url=models.url, llm_model="m", dream_lease=2, dream_enabled=False, job_max_attempts=100
    )
    fleet.serve()
    fleet.start("beat")
    async with await fleet.client(tenant) as client:
        agent = Agent(client, tenant)
        ids = [(await agent.save(fact, enrich=False))["id"] for fact in FACTS]
        merged = {"content": "Ada lives in Lyon; it is her home.", "sourceIds": ids[:2]}
        plan = {"toDelete": [{"id": ids[2], "reason": "ephemeral"}], "toSave": [merged]}
        models.chat_default = Slow(0.2, Reply(json.dumps(plan)))
        body = {"passes": ["deduplicate", "consolidate"]}
        run = await agent.request("POST", "/v1/dreams", json=body, status=HTTPStatus.CREATED)
        for _ in range(KILLS):
            worker, call_count = fleet.start("work"), len(models.chat_calls)
            await asyncio.to_thread(models.wait_for_calls, call_count + 1, 30, CHAT)
            worker.kill()
            assert await list_ids(client) == set(ids), "killed before the reply: nothing has changed"
        fleet.start("work")
        ended_run = await wait_until_ended(agent, run["id"], within=60)
        diff = (await agent.request("GET", f"/v1/dreams/{run['id']}/diff"))["results"]
        after = await list_ids(client)

    assert [pass_["state"] for pass_ in ended_run["passes"]] == ["skipped", "done"]
    assert Counter(change["action"] for change in diff) == {"archived": 3, "created": 1}
    assert set(ids[3:]) < after
    assert len(after) == 3
    assert len(models.chat_calls) == KILLS + 1


async def list_ids(client: httpx.AsyncClient) -> set[str]:
    payload: dict[str, Any] = (await client.get("/v1/memories")).json()
    return {memory["id"] for memory in payload["results"]}
