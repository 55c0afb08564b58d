"""One data directory through two lives: first without a model, then with one. Data outlive every process."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.journey.agent import Agent, Json, recalled, shown, until, word
from tests.journey.house import TestStack, standing
from tests.journey.rewriting import Understanding
from tests.standins.behaviours import Status
from tests.standins.models import ModelServer


@dataclass(frozen=True)
class Left:
    """What the first life left behind."""

    data_dir: Path
    key: str
    session: str
    secret: str
    memory: Json
    note: Json


@pytest.fixture(scope="module")
async def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Live a first life without models, and end it."""
    data_dir, secret = tmp_path_factory.mktemp("lives") / "data", word()
    with standing(data_dir, without=["flower", "beat", "workers"]) as house:
        key = house.running.key
        async with house.client(key) as client:
            agent = Agent(client, "default")
            session = await agent.session()
            memory = await agent.save(f"Ada sold her car, the {secret}")
            await agent.context(session, "Which car was sold?")
            await agent.say(session, f"It was the {secret}.")
            note = await agent.put(f"session/{session}/note", f"ask about {secret}", ttl_seconds=3000)
            assert (await agent.search(secret))["stages"] == ["bm25"]
    return Left(data_dir, key, session, secret, memory, note)


@pytest.fixture(scope="module")
def words() -> Iterator[ModelServer]:
    """An embedding endpoint that is out of order until a journey mends it."""
    with ModelServer() as server:
        server.embedding_default = Status(500)
        yield server


@pytest.fixture(scope="module")
async def house(left: Left, words: ModelServer) -> AsyncIterator[TestStack]:
    """The second life: the same data, and now an embedding model is configured."""
    model = {"embedding_base_url": words.url, "embedding_model": "words", "embedding_dimension": 64}
    with standing(left.data_dir, without=["flower"], **model) as house:
        yield house


@pytest.fixture
async def agent(left: Left, house: TestStack) -> AsyncIterator[Agent]:
    """The agent of the first life, with its old key."""
    async with house.client(left.key) as client:
        yield Agent(client, "default")


async def test_lt3_everything_is_still_there_after_a_stop_and_a_start(left: Left, agent: Agent) -> None:
    assert await agent.memory(left.memory["id"]) == left.memory
    assert left.memory["content"] in await agent.found(left.secret)
    turns = await agent.ask("GET", f"/v1/sessions/{left.session}/turns")
    assert [turn["seq"] for turn in turns["results"]] == [1, 2]
    assert await agent.ask("GET", f"/v1/working/{left.note['key']}") == left.note
    context = await agent.context(left.session, "Which car was it, again?", record_turn=False)
    assert (recalled(context), shown(context, left.memory["id"])) == ([], 1)


async def test_ix4_a_model_configured_later_makes_old_rows_due_and_search_goes_on_by_keyword(
    left: Left, agent: Agent, words: ModelServer
) -> None:
    """While the endpoint is out of order, and once it is mended."""

    async def due() -> bool:
        pending = (await agent.ask("GET", "/v1/status"))["pending"]
        return bool(pending["embedding"] > 0)

    await until(due)
    meanwhile = await agent.search(left.secret)
    assert left.memory["id"] in [one["id"] for one in meanwhile["results"]]
    assert (meanwhile["stages"], meanwhile["degraded"]) == (["bm25"], ["dense"])
    words.embedding_default = Understanding()
    await agent.settled()

    async def by_meaning() -> bool:
        answer = await agent.search("automobile")
        found = [one["id"] for one in answer["results"]]
        return answer["stages"] == ["bm25", "dense"] and found == [left.memory["id"]]

    await until(by_meaning)
    turns = await agent.ask("POST", "/v1/turns/search", json={"query": "automobile"})
    assert turns["stages"] == ["bm25", "dense"]
    assert turns["degraded"] == []


async def test_wm7_a_killed_redis_comes_back_with_the_desk_and_the_time_that_was_left(
    house: TestStack, agent: Agent
) -> None:
    session = await agent.session()
    long = await agent.put(f"session/{session}/long", "kept", ttl_seconds=900)
    short = await agent.put(f"session/{session}/short", "gone", ttl_seconds=6)
    await house.written()
    killed = house.pid("redis")
    os.kill(killed, signal.SIGKILL)
    await until(lambda: _is_back(house, agent, killed))
    assert await agent.ask("GET", f"/v1/working/{long['key']}") == long
    await until(lambda: _is_gone(agent, short))
    assert await agent.listed(f"session/{session}") == [long["key"]]


async def _is_back(house: TestStack, agent: Agent, killed: int) -> bool:
    ready = await agent.client.get("/readyz")
    with suppress(FileNotFoundError):  # while it is started again nobody has its number
        return house.pid("redis") != killed and ready.json()["stores"]["redis"] == "ok"
    return False


async def _is_gone(agent: Agent, entry: Json) -> bool:
    asked = datetime.now(UTC)
    answer = await agent.client.get(f"/v1/working/{entry['key']}")
    over = asked > datetime.fromisoformat(entry["expires_at"]) + timedelta(seconds=0.2)
    assert not (over and answer.is_success), "seen after its time"
    return answer.status_code == HTTPStatus.NOT_FOUND
