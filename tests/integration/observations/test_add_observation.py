"""SE10: facts, summaries and reflections of a session are stored, listed and deleted with the session."""

import asyncio
import json
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import text
from uuid_utils import UUID

from shared.conversation.observations import queries as observation_queries
from shared.conversation.observations.observation import ObservationDraft, ObservationKind
from shared.conversation.sessions.open import get_session
from shared.foundation.scope import Caller
from tests.agent import Agent, Json, random_word, wait_until
from tests.badinput import problem
from tests.conftest import Gateway
from tests.draining import drain, make_due
from tests.integration.observations.conftest import add_observation, search_contents


async def list_observations(agent: Agent, session: str, **query: Any) -> list[Json]:
    return list((await agent.request("GET", f"/v1/sessions/{session}/observations", params=query))["results"])


async def test_an_observation_is_stored_unchanged_with_the_agent_and_user_of_its_session(
    agent: Agent,
) -> None:
    session = await agent.session(agent_id="support", user_id="ada")
    fields: dict[str, Any] = {
        "kind": "fact",
        "content": "Ada flies from Hamburg.",
        "data": {"home": {"airport": "HAM", "rank": 1, "share": 0.25, "gates": [None, True]}},
        "tags": ["travel", "air"],
        "metadata": {"source": "form"},
        "observed_at": "2026-01-02T03:04:05Z",
    }
    observation = await add_observation(agent, session, **fields)
    assert observation.items() >= fields.items()
    owner = (observation["session_id"], observation["agent_id"], observation["user_id"])
    assert owner == (session, "support", "ada")
    assert UUID(observation["id"]).version == 7
    assert await list_observations(agent, session) == [observation]


async def test_an_observation_requires_only_a_kind_and_a_content(agent: Agent) -> None:
    session = await agent.session()
    observation = await add_observation(agent, session, "The user was in a hurry.", "reflection")
    optional = {name: observation[name] for name in ("data", "tags", "metadata", "observed_at")}
    assert optional == {"data": None, "tags": [], "metadata": {}, "observed_at": None}


async def test_observations_are_listed_in_pages_newest_first_and_filtered_by_kind(agent: Agent) -> None:
    session, other = await agent.session(), await agent.session()
    kinds = ["fact", "summary", "reflection", "fact", "fact"]
    ids = [(await add_observation(agent, session, f"number {n}", kind))["id"] for n, kind in enumerate(kinds)]
    await add_observation(agent, other, "elsewhere")
    listed_ids, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = await agent.request("GET", f"/v1/sessions/{session}/observations", params=query)
        listed_ids += [observation["id"] for observation in page["results"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert (listed_ids, pages) == (ids[::-1], 3)
    facts = await list_observations(agent, session, kind="fact")
    assert [observation["id"] for observation in facts] == [ids[4], ids[3], ids[0]]


async def test_a_repeated_request_adds_one_observation_and_returns_the_same_response(agent: Agent) -> None:
    session = await agent.session()
    path, body = f"/v1/sessions/{session}/observations", {"kind": "fact", "content": "once"}
    headers = {"idempotency-key": "the-one"}
    requests = [
        agent.client.post(path, json=body, headers=headers),
        agent.client.post(path, json=body, headers=headers),
    ]
    statuses = {response.status_code for response in await asyncio.gather(*requests)}
    repeated = await agent.client.post(path, json=body, headers=headers)
    # A conflict means that the other request is still being processed.
    assert statuses <= {HTTPStatus.CREATED, HTTPStatus.CONFLICT}
    assert [repeated.json()] == await list_observations(agent, session)
    changed = await agent.client.post(path, json=body | {"content": "twice"}, headers=headers)
    assert changed.status_code == HTTPStatus.CONFLICT


NESTED: list[Any] = []
for _ in range(300):
    NESTED = [NESTED]
INVALID: list[tuple[str, str, dict[str, Any]]] = [
    ("kind", "fact", {"kind": "rumour"}),
    ("kind", "fact", {"kind": None}),
    ("content", "blank", {"content": " \n"}),
    ("content", "string", {"content": 7}),
    ("content", "at most 16000", {"content": "x" * 16_001}),
    ("data", "dictionary", {"data": ["a"]}),
    ("data", "64 bits", {"data": {"n": 2**64}}),
    ("data", "finite", {"data": {"n": float("nan")}}),
    ("data", "finite", {"data": {"n": [float("inf")]}}),
    ("data", "depth", {"data": {"n": NESTED}}),
    ("data", "at most 16384 bytes", {"data": {"n": "x" * 16_384}}),
    ("tags.0", "line breaks", {"tags": ["a\nb"]}),
    ("metadata.k", "string", {"metadata": {"k": 1}}),
    ("observed_at", "years", {"observed_at": "0001-01-01T00:00:00+14:00"}),
    ("observed_at", "datetime", {"observed_at": "once"}),
    ("mood", "Extra inputs", {"mood": "glad"}),
    ("body", "NUL", {"content": "a\x00b"}),
    ("body", "NUL", {"data": {"\x00": 1}}),
]


@pytest.mark.parametrize(("field", "rule", "body"), INVALID)
async def test_an_invalid_observation_is_rejected_with_field_and_rule_and_not_stored(
    gateway: Gateway, agent: Agent, field: str, rule: str, body: dict[str, Any]
) -> None:
    session = await agent.session()
    content = json.dumps({"kind": "fact", "content": "a fact"} | body).encode()
    headers = {"content-type": "application/json"}
    response = await agent.client.post(
        f"/v1/sessions/{session}/observations", content=content, headers=headers
    )
    assert problem.names_violation(response, field, rule), response.text
    assert await list_observations(agent, session) == []


async def test_an_unknown_session_and_a_session_outside_the_binding_of_a_key_are_not_found(
    gateway: Gateway, agent: Agent
) -> None:
    path = f"/v1/sessions/{await agent.session(agent_id='one', user_id='ada')}/observations"
    body = {"kind": "fact", "content": "slipped in"}
    for unknown in ("/v1/sessions/nobody/observations", path):
        async with await gateway.new_client(agent_id="two") as client:
            assert (await client.post(unknown, json=body)).status_code == HTTPStatus.NOT_FOUND
            assert (await client.get(unknown)).status_code == HTTPStatus.NOT_FOUND
    assert (await agent.request("GET", path))["results"] == []


async def test_deleting_a_session_deletes_its_observations_embeddings_and_stored_responses(
    embedding: Gateway,
) -> None:
    agent, secret = Agent(embedding.client, embedding.tenant), random_word()
    session = await agent.session()
    path = f"/v1/sessions/{session}/observations"
    request: dict[str, Any] = {
        "json": {"kind": "fact", "content": secret},
        "headers": {"idempotency-key": "k"},
    }
    assert (await agent.client.post(path, **request)).status_code == HTTPStatus.CREATED
    await make_due(embedding.resources)
    await drain(embedding.resources)
    assert await search_contents(agent, secret) == [secret]
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert await search_contents(agent, secret) == []
    for table in ("observation", "embedding_cache"):
        async with embedding.resources.postgres.for_tenant(embedding.tenant) as tx:
            count = await tx.scalar(text(f"SELECT count(*) FROM {table}"))  # noqa: S608
        assert count == 0, table
    await agent.session(id=session)
    repeated = await agent.client.post(path, **request)
    assert repeated.status_code == HTTPStatus.CONFLICT
    assert secret not in repeated.text


async def test_lt13_erasing_a_user_deletes_their_observations_and_counts_them_in_the_receipt(
    agent: Agent,
) -> None:
    secret = random_word()
    for user in ("ada", "bob"):
        await add_observation(agent, await agent.session(user_id=user), f"{secret} of {user}")
    receipt = await agent.request("DELETE", "/v1/users/ada")
    assert receipt["erased"].items() >= {"observations": 1, "turns": 0, "sessions": 1}.items()
    assert await search_contents(agent, secret, user_id="ada") == []
    assert await search_contents(agent, secret, user_id="bob") == [f"{secret} of bob"]


async def test_lt13_an_observation_that_is_written_during_an_erasure_is_erased_too(
    gateway: Gateway, agent: Agent
) -> None:
    """The erasure waits for the writer and reads the observations afterwards."""
    session = await agent.session(user_id="ada")
    postgres, settings = gateway.resources.postgres, gateway.resources.settings
    caller = Caller("a writer", gateway.tenant, frozenset({"write"}))
    async with postgres.for_tenant(gateway.tenant) as writer:
        locked_session = await get_session(writer, settings, caller, session, lock=True)
        draft = ObservationDraft(kind=ObservationKind.FACT, content=random_word())
        await observation_queries.insert(writer, locked_session, draft, caller.origin)
        writer_pid = await writer.scalar(text("SELECT pg_backend_pid()"))
        erasing = asyncio.create_task(agent.request("DELETE", "/v1/users/ada"))

        async def is_waiting() -> bool:
            blocked = "SELECT count(*) FROM pg_stat_activity WHERE :writer = ANY(pg_blocking_pids(pid))"
            async with postgres.for_tenant(gateway.tenant) as tx:
                return bool(await tx.scalar(text(blocked), {"writer": writer_pid}))

        await wait_until(is_waiting)
    assert (await erasing)["erased"]["observations"] == 1
