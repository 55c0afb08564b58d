"""A worker that is killed at any point while it mines leaves the old state or the new one."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.draining import make_due
from tests.integration.dreams.kill_orders import KilledWorker, killing_process
from tests.integration.mining.conftest import JUNE, MARCH, Talker, fact, propose
from tests.integration.mining.test_facts import AARHUS, ODENSE
from tests.journey.agent import Json
from tests.long_form import in_long_form
from tests.standins.models import ModelServer

STRIDE = 5
KITE = "The user has a kite."


@pytest.fixture(scope="module")
def killed_worker() -> Iterator[KilledWorker]:
    with killing_process() as run:
        yield run


@pytest.mark.parametrize("offset", in_long_form([1, 3], otherwise=[1]))
async def test_a_kill_at_any_point_leaves_the_old_or_the_new_state_and_nothing_counts_twice(
    talker: Talker, models: ModelServer, killed_worker: KilledWorker, offset: int
) -> None:
    point, code, states = offset, -9, list[str]()
    while code == -9:
        user_id = f"user-{point}"
        old = await talker.save(AARHUS, user_id=user_id, occurred_at=MARCH, enrich=False)
        kite = await talker.save(KITE, user_id=user_id, occurred_at=MARCH, enrich=False)
        session = await talker.talk("We moved from Aarhus to Odense, with my kite.", at=JUNE, user_id=user_id)
        models.chat_default = propose(
            fact(ODENSE, (session, 1), relation="changed", of=old["id"]),
            fact(KITE, (session, 1), relation="same", of=kite["id"]),
        )
        run = await talker.request("POST", f"/v1/sessions/{session}/mine", status=202)
        before = await _state(talker, user_id)

        code = await asyncio.to_thread(killed_worker, talker.gateway, run["id"], point, ["mine_facts"])
        between = await _state(talker, user_id)
        await make_due(talker.gateway.resources)
        await talker.execute(run)

        after = await _state(talker, user_id)
        assert between in (before, after), "neither the old state nor the new one"
        assert after == {AARHUS: 1, ODENSE: 1, KITE: 2}
        changes = [change["action"] for change in await talker.diff(run)]
        assert sorted(changes) == ["closed", "created", "reinforced"]
        states.append("old" if between == before else "new")
        point += STRIDE
    assert code == 0
    assert states == sorted(states, reverse=True), "the new state stays"
    assert {"old", "new"} == set(states)


async def _state(talker: Talker, user_id: str) -> Json:
    """Return how often each memory was observed, by content."""
    memories = await talker.facts(user_id=user_id, validity="any")
    return {content: memory["reinforcement_count"] for content, memory in memories.items()}
