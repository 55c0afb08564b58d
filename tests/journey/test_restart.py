"""One data directory in two runs of a stack: first without a model, then with one. All data is kept."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.agent import Agent, Json, count_occurrences, random_word, recalled_ids, wait_until
from tests.journey.rewriting import SynonymVectors
from tests.journey.stack import ProcessStack, run_stack
from tests.memory_folder import memory_folder
from tests.standins.behaviours import Status
from tests.standins.models import ModelServer


@dataclass(frozen=True)
class FirstRun:
    """What the first run of the stack stored."""

    data_dir: Path
    key: str
    session: str
    secret: str
    memory: Json
    note: Json


@pytest.fixture(scope="module")
async def first_run() -> AsyncIterator[FirstRun]:
    """Run a stack without models, store records, and stop it."""
    with memory_folder() as folder:
        yield await _run_first(folder / "data")


async def _run_first(data_dir: Path) -> FirstRun:
    secret = random_word()
    with run_stack(data_dir, without=["flower", "beat", "workers"]) as first_stack:
        key = first_stack.running.key
        async with first_stack.client(key) as client:
            agent = Agent(client, "default")
            session = await agent.session()
            memory = await agent.save(f"Ada sold her car, the {secret}")
            await agent.context(session, "Which car was sold?")
            await agent.append_turn(session, f"It was the {secret}.")
            note = await agent.put(f"session/{session}/note", f"ask about {secret}", ttl_seconds=3000)
            assert (await agent.search(secret))["stages"] == ["bm25"]
    return FirstRun(data_dir, key, session, secret, memory, note)


@pytest.fixture(scope="module")
def embedding_server() -> Iterator[ModelServer]:
    """Run an embedding endpoint that fails until a test repairs it."""
    # In few dimensions the random word of the memory would decide whether its cosine reaches the floor.
    with ModelServer(dimension=1024) as server:
        server.embedding_default = Status(500)
        yield server


@pytest.fixture(scope="module")
async def second_stack(first_run: FirstRun, embedding_server: ModelServer) -> AsyncIterator[ProcessStack]:
    """Run a stack on the same data, now with an embedding model."""
    model = {
        "embedding_base_url": embedding_server.url,
        "embedding_model": "words",
        "embedding_dimension": embedding_server.dimension,
    }
    with run_stack(first_run.data_dir, without=["flower"], **model) as running_stack:
        yield running_stack


@pytest.fixture
async def agent(first_run: FirstRun, second_stack: ProcessStack) -> AsyncIterator[Agent]:
    """Yield the agent of the first run, with the same key."""
    async with second_stack.client(first_run.key) as client:
        yield Agent(client, "default")


async def test_lt3_all_records_are_kept_after_a_stop_and_a_start(first_run: FirstRun, agent: Agent) -> None:
    assert await agent.memory(first_run.memory["id"]) == first_run.memory
    assert first_run.memory["content"] in await agent.search_contents(first_run.secret)
    turns = await agent.request("GET", f"/v1/sessions/{first_run.session}/turns")
    assert [turn["seq"] for turn in turns["results"]] == [1, 2]
    assert await agent.request("GET", f"/v1/working/{first_run.note['key']}") == first_run.note
    context = await agent.context(first_run.session, "Which car was it, again?", record_turn=False)
    assert (recalled_ids(context), count_occurrences(context, first_run.memory["id"])) == ([], 1)


async def test_ix4_a_model_configured_later_makes_old_records_due_and_search_goes_on_by_keyword(
    first_run: FirstRun, agent: Agent, embedding_server: ModelServer
) -> None:
    """Search while the endpoint fails, and after it is repaired."""

    async def has_pending_embeddings() -> bool:
        pending = (await agent.request("GET", "/v1/status"))["pending"]
        return bool(pending["embedding"] > 0)

    await wait_until(has_pending_embeddings)
    meanwhile = await agent.search(first_run.secret)
    assert first_run.memory["id"] in [memory["id"] for memory in meanwhile["results"]]
    assert (meanwhile["stages"], meanwhile["degraded"]) == (["bm25"], ["dense"])
    embedding_server.embedding_default = SynonymVectors()
    await agent.wait_until_idle()

    async def is_found_by_vector() -> bool:
        response = await agent.search("automobile")
        ids = [memory["id"] for memory in response["results"]]
        return response["stages"] == ["bm25", "dense"] and ids == [first_run.memory["id"]]

    async def are_turns_searched_by_vector() -> bool:
        # A query whose vector is late, on a busy machine, is searched by keywords alone, and says so.
        turns = await agent.request("POST", "/v1/turns/search", json={"query": "automobile"})
        return (turns["stages"], turns["degraded"]) == (["bm25", "dense"], [])

    await wait_until(is_found_by_vector)
    await wait_until(are_turns_searched_by_vector)


async def test_wm7_a_killed_redis_is_restarted_with_all_entries_and_their_expiry(
    second_stack: ProcessStack, agent: Agent
) -> None:
    session = await agent.session()
    long_lived = await agent.put(f"session/{session}/long", "kept", ttl_seconds=900)
    short_lived = await agent.put(f"session/{session}/short", "gone", ttl_seconds=6)
    await second_stack.wait_until_persisted()
    killed_pid = second_stack.pid("redis")
    os.kill(killed_pid, signal.SIGKILL)
    await wait_until(lambda: _is_back(second_stack, agent, killed_pid))
    assert await agent.request("GET", f"/v1/working/{long_lived['key']}") == long_lived
    await wait_until(lambda: _is_expired(agent, short_lived))
    assert await agent.list_keys(f"session/{session}") == [long_lived["key"]]


async def _is_back(second_stack: ProcessStack, agent: Agent, killed_pid: int) -> bool:
    ready = await agent.client.get("/readyz")
    with suppress(FileNotFoundError):  # there is no process file while Redis restarts
        return second_stack.pid("redis") != killed_pid and ready.json()["stores"]["redis"] == "ok"
    return False


async def _is_expired(agent: Agent, entry: Json) -> bool:
    requested_at = datetime.now(UTC)
    response = await agent.client.get(f"/v1/working/{entry['key']}")
    has_expired = requested_at > datetime.fromisoformat(entry["expires_at"]) + timedelta(seconds=0.2)
    assert not (has_expired and response.is_success), "returned after its expiry"
    return response.status_code == HTTPStatus.NOT_FOUND
