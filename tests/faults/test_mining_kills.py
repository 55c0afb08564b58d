"""CV5: a worker that is killed between the model's answer and the record changes nothing."""

import asyncio
import json
from collections.abc import Callable

from tests.agent import Agent
from tests.ended_runs import wait_until_ended
from tests.faults.locked_row import locked_row
from tests.faults.processes import Fleet
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT

KITE = "The user has a kite."


async def test_a_worker_killed_after_the_answer_leaves_the_old_state_and_the_next_one_reinforces_once(
    make_fleet: Callable[..., Fleet], tenant: str, models: ModelServer
) -> None:
    fleet = make_fleet(
        llm_base_url=models.url, llm_model="m", dream_lease=5, dream_enabled=False, job_max_attempts=100
    )
    fleet.serve()
    fleet.start("beat")
    async with await fleet.client(tenant) as client:
        agent = Agent(client, tenant)
        kite = await agent.save(KITE, user_id="ada", enrich=False)
        session = await agent.session(user_id="ada")
        await agent.append_turn(session, "My kite is red.", role="user")
        facts = [
            {"content": KITE, "relation": "same", "of": kite["id"], "sources": [[session, 1]]},
            {"content": "The user's kite is red.", "sources": [[session, 1]]},
        ]
        models.chat_default = Reply(json.dumps({"facts": facts}))
        worker = fleet.start("work")
        async with locked_row(fleet, tenant, "memory", kite["id"]) as wait_until_needed:
            run = await agent.request("POST", f"/v1/sessions/{session}/mine", status=202)
            await asyncio.to_thread(models.wait_for_calls, 1, 30, CHAT)
            await wait_until_needed()
            worker.kill()
        assert (await agent.memory(kite["id"]))["reinforcement_count"] == 1, "nothing is half recorded"
        fleet.start("work")
        await wait_until_ended(agent, run["id"], within=60)
        after = await agent.request("GET", "/v1/memories", params={"user_id": "ada"})

    assert {memory["content"]: memory["reinforcement_count"] for memory in after["results"]} == {
        KITE: 2,
        "The user's kite is red.": 1,
    }
    assert len(models.chat_calls) == 2
