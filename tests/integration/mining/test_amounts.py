"""CV5, MO3, SD3: many turns are mined in parts, under a budget, by one worker at a time."""

import asyncio
import json
import re

from sqlalchemy import func, select

from shared.dreams.runs.table import dream_read_turn
from shared.foundation.stages import MINE_START, DreamPass
from shared.jobs.table import job
from tests import run_pass
from tests.agent import Json
from tests.integration.mining.conftest import Talker, propose, shown_lines
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call

TURNS = 1000


def one_fact_of_each_part(call: Call) -> str:
    """Propose a fact of the last turn of the user that a prompt shows."""
    shown = "\n".join(shown_lines(call))
    [*_, (seq, number)] = re.findall(r"^\[(\d+)\] .*\(user\): Order (\d+) is mine\.$", shown, re.MULTILINE)
    session = re.findall("## Session: (.+)", shown)[-1]
    content = f"The user owns order {number}."
    return json.dumps({"facts": [{"content": content, "sources": [[session, int(seq)]]}]})


async def test_a_thousand_turns_are_mined_under_a_budget_and_none_is_lost(
    talker: Talker, models: ModelServer
) -> None:
    session = await talker.session(user_id="ada")
    for start in range(0, TURNS, 500):
        turns = [f"Order {number} is mine." for number in range(start, start + 250) for _ in range(2)]
        await talker.say(session, *turns)
    models.chat_default = Reply(one_fact_of_each_part)
    budget = {"period": "day", "limit_tokens": 20_000}
    await talker.request("PUT", "/v1/budgets/purpose/mining", json=budget)
    states = [(await talker.mine(session))["passes"][0]["state"] for _ in range(4)]
    asked = len(mining_calls(models))
    assert (states[0], states[-1]) == ("done", "skipped")
    assert 0 < await count_read(talker) < TURNS, "what is not paid for stays due"
    assert await is_due_later(talker)
    await talker.request("DELETE", "/v1/budgets/purpose/mining")
    while (run := await talker.mine(session))["passes"][0]["state"] == "done":
        pass
    assert run["passes"][0]["reason"] == "there are no turns that were not mined yet"
    assert await count_read(talker) == TURNS
    parts = [shown_lines(call) for call in mining_calls(models)]
    assert max(sum(line.startswith(("[", "(read")) for line in lines) for lines in parts) <= 66
    assert len(parts) > asked
    assert len(await talker.facts()) == len(parts), "one fact of each part, none twice"


def mining_calls(models: ModelServer) -> list[Call]:
    """Return what was asked for facts: summaries of so long a session are asked for, too."""
    return [call for call in models.chat_calls if "Known facts:" in call.prompt]


async def count_read(talker: Talker) -> int:
    name = dream_read_turn.c["pass"] == DreamPass.MINE_FACTS
    where = (dream_read_turn.c.tenant == talker.tenant, name)
    async with talker.gateway.resources.postgres.for_tenant(talker.tenant) as tx:
        return int(await tx.scalar(select(func.count()).select_from(dream_read_turn).where(*where)) or 0)


async def is_due_later(talker: Talker) -> bool:
    where = (job.c.tenant == talker.tenant, job.c.stage == MINE_START.name, job.c.run_at > func.now())
    async with talker.gateway.resources.postgres.for_tenant(talker.tenant) as tx:
        return bool(await tx.scalar(select(func.count()).select_from(job).where(*where)))


async def test_of_several_workers_one_mines_and_nothing_is_stored_twice(
    talker: Talker, models: ModelServer
) -> None:
    session = await talker.talk("Order 7 is mine.")
    models.chat_default = Reply(one_fact_of_each_part)
    run = await talker.request("POST", f"/v1/sessions/{session}/mine", status=202)
    resources, name = talker.gateway.resources, DreamPass.MINE_FACTS
    results = await asyncio.gather(
        *(run_pass.run_pass(resources, talker.tenant, run["id"], name) for _ in range(4))
    )
    assert sorted(results) == ["done", "not due", "not due", "not due"]
    assert list(await talker.facts()) == ["The user owns order 7."]
    assert len(models.chat_calls) == 1


async def test_asking_again_while_a_run_has_not_ended_joins_it_and_the_scope_is_due_after_it(
    talker: Talker, models: ModelServer
) -> None:
    models.chat_default = propose()
    session = await talker.talk("Order 7 is mine.")
    path = f"/v1/sessions/{session}/mine"
    first: Json = await talker.request("POST", path, status=202, headers={"idempotency-key": "once"})
    second = await talker.request("POST", path, status=202)
    assert second["id"] == first["id"]
    async with talker.gateway.resources.postgres.for_tenant(talker.tenant) as tx:
        where = (job.c.tenant == talker.tenant, job.c.stage == MINE_START.name, job.c.run_at <= func.now())
        assert await tx.scalar(select(func.count()).select_from(job).where(*where)) == 1
    await talker.execute(first)
    repeated = await talker.request("POST", path, status=202, headers={"idempotency-key": "once"})
    assert repeated == first
