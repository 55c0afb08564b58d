"""SE10: facts, summaries and reflections are attached to a session, kept, listed, and go with it."""

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
from tests.badinput import problem
from tests.conftest import Gateway
from tests.draining import drain, make_due
from tests.integration.observations.conftest import found, observe
from tests.journey.agent import Agent, Json, until, word


async def listed(agent: Agent, session: str, **query: Any) -> list[Json]:
    return list((await agent.ask("GET", f"/v1/sessions/{session}/observations", params=query))["results"])


async def test_an_observation_is_kept_as_it_was_told_with_the_agent_and_user_of_its_session(
    agent: Agent,
) -> None:
    session = await agent.session(agent_id="support", user_id="ada")
    told: dict[str, Any] = {
        "kind": "fact",
        "content": "Ada flies from Hamburg.",
        "data": {"home": {"airport": "HAM", "rank": 1, "share": 0.25, "gates": [None, True]}},
        "tags": ["travel", "air"],
        "metadata": {"source": "form"},
        "observed_at": "2026-01-02T03:04:05Z",
    }
    kept = await observe(agent, session, **told)
    assert kept.items() >= told.items()
    assert (kept["session_id"], kept["agent_id"], kept["user_id"]) == (session, "support", "ada")
    assert UUID(kept["id"]).version == 7
    assert await listed(agent, session) == [kept]


async def test_an_observation_needs_no_more_than_a_kind_and_a_content(agent: Agent) -> None:
    kept = await observe(agent, await agent.session(), "The user was in a hurry.", "reflection")
    assert (kept["data"], kept["tags"], kept["metadata"], kept["observed_at"]) == (None, [], {}, None)


async def test_observations_are_listed_by_page_the_newest_first_and_by_kind(agent: Agent) -> None:
    session, other = await agent.session(), await agent.session()
    kinds = ["fact", "summary", "reflection", "fact", "fact"]
    told = [(await observe(agent, session, f"number {n}", kind))["id"] for n, kind in enumerate(kinds)]
    await observe(agent, other, "elsewhere")
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = await agent.ask("GET", f"/v1/sessions/{session}/observations", params=query)
        seen += [one["id"] for one in page["results"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert (seen, pages) == (told[::-1], 3)
    assert [one["id"] for one in await listed(agent, session, kind="fact")] == [told[4], told[3], told[0]]


async def test_the_same_request_sent_again_observes_once_and_is_answered_the_same(agent: Agent) -> None:
    session = await agent.session()
    path, body = f"/v1/sessions/{session}/observations", {"kind": "fact", "content": "once"}
    headers = {"idempotency-key": "the-one"}
    sent = [
        agent.client.post(path, json=body, headers=headers),
        agent.client.post(path, json=body, headers=headers),
    ]
    answers = {answer.status_code for answer in await asyncio.gather(*sent)}
    again = await agent.client.post(path, json=body, headers=headers)
    assert answers <= {HTTPStatus.CREATED, HTTPStatus.CONFLICT}  # a twin that is still at work
    assert [again.json()] == await listed(agent, session)
    changed = await agent.client.post(path, json=body | {"content": "twice"}, headers=headers)
    assert changed.status_code == HTTPStatus.CONFLICT


NESTED: list[Any] = []
for _ in range(300):
    NESTED = [NESTED]
REFUSED: list[tuple[str, str, dict[str, Any]]] = [
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


@pytest.mark.parametrize(("field", "rule", "body"), REFUSED)
async def test_what_breaks_a_rule_is_refused_by_field_and_rule_and_nothing_is_stored(
    gateway: Gateway, agent: Agent, field: str, rule: str, body: dict[str, Any]
) -> None:
    session = await agent.session()
    content = json.dumps({"kind": "fact", "content": "a fact"} | body).encode()
    headers = {"content-type": "application/json"}
    answer = await agent.client.post(f"/v1/sessions/{session}/observations", content=content, headers=headers)
    assert problem.names(answer, field, rule), answer.text
    assert await listed(agent, session) == []


async def test_an_unknown_session_is_not_found_and_neither_is_that_of_a_key_bound_elsewhere(
    gateway: Gateway, agent: Agent
) -> None:
    path = f"/v1/sessions/{await agent.session(agent_id='one', user_id='ada')}/observations"
    body = {"kind": "fact", "content": "slipped in"}
    for unknown in ("/v1/sessions/nobody/observations", path):
        async with await gateway.another(agent_id="two") as client:
            assert (await client.post(unknown, json=body)).status_code == HTTPStatus.NOT_FOUND
            assert (await client.get(unknown)).status_code == HTTPStatus.NOT_FOUND
    assert (await agent.ask("GET", path))["results"] == []


async def test_closing_a_session_takes_its_observations_with_their_vectors_and_repeated_answers(
    embedding: Gateway,
) -> None:
    agent, secret = Agent(embedding.client, embedding.tenant), word()
    session = await agent.session()
    path = f"/v1/sessions/{session}/observations"
    sent: dict[str, Any] = {"json": {"kind": "fact", "content": secret}, "headers": {"idempotency-key": "k"}}
    assert (await agent.client.post(path, **sent)).status_code == HTTPStatus.CREATED
    await make_due(embedding.resources)
    await drain(embedding.resources)
    assert await found(agent, secret) == [secret]
    await agent.ask("DELETE", f"/v1/sessions/{session}")
    assert await found(agent, secret) == []
    for table in ("observation", "embedding_cache"):
        async with embedding.resources.postgres.for_tenant(embedding.tenant) as connection:
            left = await connection.scalar(text(f"SELECT count(*) FROM {table}"))  # noqa: S608
        assert left == 0, table
    await agent.session(id=session)
    again = await agent.client.post(path, **sent)
    assert again.status_code == HTTPStatus.CONFLICT
    assert secret not in again.text


async def test_erasing_a_user_takes_what_was_observed_of_them_and_counts_it(agent: Agent) -> None:
    """LT13."""
    secret = word()
    for user in ("ada", "bob"):
        await observe(agent, await agent.session(user_id=user), f"{secret} of {user}")
    receipt = await agent.ask("DELETE", "/v1/users/ada")
    assert receipt["erased"].items() >= {"observations": 1, "turns": 0, "sessions": 1}.items()
    assert await found(agent, secret, user_id="ada") == []
    assert await found(agent, secret, user_id="bob") == [f"{secret} of bob"]


async def test_what_is_being_observed_while_its_user_is_erased_goes_with_them_out_of_the_index_too(
    gateway: Gateway, agent: Agent
) -> None:
    """LT13: who erases waits for who writes, and only then looks at what there is."""
    session, postgres = await agent.session(user_id="ada"), gateway.resources.postgres
    caller = Caller("a writer", gateway.tenant, frozenset({"write"}))
    async with postgres.for_tenant(gateway.tenant) as writing:
        held = await get_session(writing, caller, session, 60, lock=True)
        await observation_queries.insert_rows(
            writing, held, ObservationDraft(kind=ObservationKind.FACT, content=word())
        )
        writer = await writing.scalar(text("SELECT pg_backend_pid()"))
        erasing = asyncio.create_task(agent.ask("DELETE", "/v1/users/ada"))

        async def waits() -> bool:
            blocked = "SELECT count(*) FROM pg_stat_activity WHERE :writer = ANY(pg_blocking_pids(pid))"
            async with postgres.for_tenant(gateway.tenant) as connection:
                return bool(await connection.scalar(text(blocked), {"writer": writer}))

        await until(waits)
    assert (await erasing)["erased"]["observations"] == 1
