"""Runs in which a worker may be killed: what each needs, and what it must lead to."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tests.agent import Json
from tests.conftest import Gateway
from tests.integration.dreams.conftest import live, merge_reply, save_memories
from tests.integration.mining.conftest import JUNE, MARCH, Talker, fact, propose
from tests.integration.mining.home import AARHUS, ODENSE
from tests.standins.models import ModelServer

KITE = "The user has a kite."


@dataclass(frozen=True)
class StartedRun:
    """A run whose passes are due."""

    id: str
    read_state: Callable[[], Awaitable[Json]]
    """Reads what the run changes."""
    check: Callable[[Json], None]
    """Fails unless a state is the one that the run leads to."""


@dataclass(frozen=True)
class KillCase:
    """Passes, and how a run of them is started for a user of whom nothing is stored."""

    passes: Sequence[str]
    states: Sequence[str]
    """How the passes end."""
    actions: Sequence[str]
    """What the run has done to memories, sorted."""
    stride: int
    """One of so many statements and commits is where a worker is killed: a pass has about twenty."""
    start: Callable[[Gateway, ModelServer, str], Awaitable[StartedRun]]


async def _merge(gateway: Gateway, models: ModelServer, user_id: str) -> StartedRun:
    ids = await save_memories(gateway, user_id=user_id)
    models.chat_default = merge_reply(ids)

    def check(after: Json) -> None:
        merged = [content for content in after.values() if content.startswith("Ada lives in Lyon; ")]
        assert len(merged) == 1
        assert set(ids) - set(after) == set(ids[:3])

    async def read_state() -> Json:
        return await live(gateway, user_id)

    body = {"passes": ["deduplicate", "consolidate"], "user_id": user_id}
    run_id = (await gateway.client.post("/v1/dreams", json=body)).json()["id"]
    return StartedRun(run_id, read_state, check)


async def _mine(gateway: Gateway, models: ModelServer, user_id: str) -> StartedRun:
    talker = Talker(gateway)
    old = await talker.save(AARHUS, user_id=user_id, occurred_at=MARCH, enrich=False)
    kite = await talker.save(KITE, user_id=user_id, occurred_at=MARCH, enrich=False)
    session = await talker.talk("We moved from Aarhus to Odense, with my kite.", at=JUNE, user_id=user_id)
    models.chat_default = propose(
        fact(ODENSE, (session, 1), relation="changed", of=old["id"]),
        fact(KITE, (session, 1), relation="same", of=kite["id"]),
    )

    def check(after: Json) -> None:
        assert after == {AARHUS: 1, ODENSE: 1, KITE: 2}, "nothing counts twice"

    async def read_state() -> Json:
        """Return how often each memory was observed, by content."""
        memories = await talker.facts(user_id=user_id, validity="any")
        return {content: memory["reinforcement_count"] for content, memory in memories.items()}

    run = await talker.request("POST", f"/v1/sessions/{session}/mine", status=202)
    return StartedRun(run["id"], read_state, check)


CASES = {
    "merge memories": KillCase(
        ("deduplicate", "consolidate"),
        ("skipped", "done"),
        ("archived", "archived", "archived", "created"),
        4,
        _merge,
    ),
    "mine a session": KillCase(("mine_facts",), ("done",), ("closed", "created", "reinforced"), 5, _mine),
}
