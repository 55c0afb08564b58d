"""CV3: a worker that is killed between the model's answer and its record loses and doubles no turn."""

import asyncio
from collections.abc import Callable

from tests.agent import Agent, Json, find_block
from tests.faults.locked_row import locked_row
from tests.faults.processes import Fleet
from tests.integration.summary.conftest import STEP, WINDOW, numbers, summarize
from tests.standins.behaviours import Hang, Reply
from tests.standins.models import ModelServer
from tests.standins.wire import CHAT

KILLS = 2


async def test_a_worker_killed_between_the_answer_and_its_record_leaves_every_turn_in_one_place(
    make_fleet: Callable[..., Fleet], tenant: str, models: ModelServer
) -> None:
    models.chat_default = Reply(summarize)
    models.chat_replies.extend(Hang() for _ in range(KILLS))
    fleet = make_fleet(llm_base_url=models.url, llm_model="m", job_lease=5, job_max_attempts=100, **WINDOW)
    fleet.serve()
    fleet.start("beat")
    async with await fleet.client(tenant) as client:
        agent = Agent(client, tenant)
        session = await agent.session()
        for number in range(1, 7):
            await agent.append_turn(session, f"#{number}")
        for _ in range(KILLS):
            worker, call_count = fleet.start("work"), len(models.chat_calls)
            await asyncio.to_thread(models.wait_for_calls, call_count + 1, 30, CHAT)
            async with locked_row(fleet, tenant, "session", session) as wait_until_needed:
                models.release()
                await wait_until_needed()
                worker.kill()
        before = await agent.context(session, "now?", record_turn=False)
        fleet.start("work")
        await agent.wait_until_idle(within=60)
        after = await agent.context(session, "now?", record_turn=False)
    assert (find_block(before, "summary"), replayed(before)) == (None, numbers(1, 6))
    assert numbers(1, STEP) in (find_block(after, "summary") or {})["text"]
    assert (replayed(after), after["degraded"]) == (numbers(STEP + 1, 6), [])
    assert len(models.chat_calls) == KILLS + 1


def replayed(context: Json) -> str:
    """Return the turns that a context replays."""
    contents = [message["content"] for message in context["messages"]]
    return " ".join(content for content in contents if content.startswith("#"))
