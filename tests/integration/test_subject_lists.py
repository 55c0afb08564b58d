"""Users and agents are listed whichever table names them, in pages, from indexes."""

from uuid import uuid4

import pytest
from sqlalchemy import text

from shared.foundation.content import Subject
from shared.lifecycle import subject_queries
from tests.agent import Agent
from tests.conftest import Gateway
from tests.isolation import raw_rows
from tests.state import StateInspector

LISTS = {Subject.USER: "/v1/users", Subject.AGENT: "/v1/agents"}
each_subject = pytest.mark.parametrize("subject", LISTS)


async def _ids(agent: Agent, path: str, **query: str | int) -> list[str]:
    return [row["id"] for row in (await agent.request("GET", path, params=query))["results"]]


async def _pages(agent: Agent, path: str, **query: str | int) -> list[list[str]]:
    pages: list[list[str]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await agent.request("GET", path, params=query | cursor)
        pages.append([row["id"] for row in page["results"]])
        if page["next_cursor"] is None:
            return pages
        cursor = {"cursor": page["next_cursor"]}


async def _add_row(inspector: StateInspector, tenant: str, table: str, **columns: str) -> None:
    """Insert a row that names other records which do not exist."""
    random = {
        name: uuid4().hex for name in ("id", "run_id", "session_id", "memory_id", "name", "namespace", "key")
    }
    values = {"tenant": tenant, "agent_id": "a", "user_id": "u", "owner_kind": "agent", **random, **columns}
    await raw_rows._insert(inspector.postgres, table, values, uuid4().hex)


@each_subject
async def test_whoever_is_named_by_any_table_is_listed_once(
    agent: Agent, gateway: Gateway, inspector: StateInspector, subject: Subject
) -> None:
    sources = subject_queries.sources(subject)
    assert {source.table.name for source in sources} >= {"memory", "session", "pinned_text", "dream_run"}
    for source in sources:
        others = {"user_id": "u", "agent_id": "a"}
        column = {source.column.name: f"in-{source.table.name}"}
        await _add_row(inspector, gateway.tenant, source.table.name, **others | column)
        await _add_row(inspector, gateway.tenant, source.table.name, **others)
    named = {f"in-{source.table.name}" for source in sources}
    listed = await _ids(agent, LISTS[subject], limit=100)
    assert set(listed) >= named
    assert listed == sorted(set(listed))
    if subject is Subject.USER:
        of_agents = subject_queries.sources(subject, of_agent=True)
        assert {source.table.name for source in sources} - {s.table.name for s in of_agents} == {
            "deleted_source_session"
        }
        of_agent = {f"in-{source.table.name}" for source in of_agents}
        assert set(await _ids(agent, LISTS[subject], limit=100, agent_id="a")) >= of_agent
        assert await _ids(agent, LISTS[subject], agent_id="b") == []


async def test_users_are_paged_by_the_characters_of_their_ids(agent: Agent) -> None:
    users = ["Zoë", "ada", "ada-2", "ada.lovelace@example.org", "bob", "élan", "日本", "🎉"]
    for user in reversed(users):
        await agent.session(user_id=user, agent_id="inn")
    await agent.save("A common memory.", agent_id="inn")
    await agent.save("A memory of Ada.", agent_id="mill", user_id="ada")
    assert await _pages(agent, "/v1/users", limit=3) == [users[:3], users[3:6], users[6:]]
    assert await _pages(agent, "/v1/users", limit=2, prefix="ada") == [users[1:3], users[3:4]]
    assert await _ids(agent, "/v1/users", prefix="ada-2") == ["ada-2"]
    assert await _ids(agent, "/v1/users", prefix="c") == await _ids(agent, "/v1/users", prefix="%") == []
    assert await _ids(agent, "/v1/users", agent_id="mill") == ["ada"]
    assert await _pages(agent, "/v1/agents", limit=1) == [["inn"], ["mill"]]


async def test_the_last_activity_is_that_of_the_newest_session_or_memory(agent: Agent) -> None:
    session = await agent.request("POST", "/v1/sessions", json={"user_id": "ada"}, status=201)
    for path in ("/v1/users", "/v1/agents"):
        [row] = (await agent.request("GET", path))["results"]
        assert row["last_active_at"] == session["created_at"], path
    memory = await agent.save("Ada takes the train.", user_id="ada", agent_id="mill")
    rows = (await agent.request("GET", "/v1/users"))["results"]
    seen = memory["last_seen_at"]
    assert [(row["id"], row["last_active_at"]) for row in rows] == [("ada", seen)]
    rows = (await agent.request("GET", "/v1/users", params={"agent_id": "default"}))["results"]
    assert [row["last_active_at"] for row in rows] == [session["created_at"]]


async def test_an_erased_user_is_not_listed_any_more(agent: Agent) -> None:
    await agent.save("Ada takes the train.", user_id="ada")
    await agent.session(user_id="ada")
    await agent.save("Bob takes the bus.", user_id="bob")
    await agent.request("DELETE", "/v1/users/ada")
    assert await _ids(agent, "/v1/users") == ["bob"]


@pytest.mark.parametrize("cursor", ["", "x", "%%%", "/w==", "AA=="])
@each_subject
async def test_a_cursor_that_no_list_returned_is_refused(agent: Agent, subject: Subject, cursor: str) -> None:
    response = await agent.client.get(LISTS[subject], params={"cursor": cursor})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "cursor")


@pytest.mark.parametrize(
    ("subject", "of_agent"), [(Subject.USER, False), (Subject.USER, True), (Subject.AGENT, False)]
)
async def test_each_id_of_a_page_is_looked_up_in_indexes(
    agent: Agent, gateway: Gateway, subject: Subject, *, of_agent: bool
) -> None:
    """What is read, sorted or compared outside an index costs as much as the tenant has."""
    await agent.session(user_id="u", agent_id="a")
    statement = subject_queries._statement(subject, of_agent=of_agent)
    values = {"tenant": gateway.tenant, "prefix": "", "start": "", "limit": 21, "agent_id": "a"}
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for method in ("seqscan", "bitmapscan", "sort"):
            await tx.execute(text(f"SET LOCAL enable_{method} = off"))
        rows = await tx.execute(text(f"EXPLAIN (ANALYZE) {statement}"), values)
        plan = [str(line) for (line,) in rows]
    comparisons = [line for line in plan if "page_1.id)" in line]
    looked_up = [line for line in comparisons if "Index Cond:" in line]
    assert len(looked_up) == len(subject_queries.sources(subject, of_agent=of_agent))
    assert comparisons == looked_up
    assert not [line for line in plan if "Seq Scan" in line]
    assert [line.strip() for line in plan if "Sort Key" in line] == ['Sort Key: page."position"']
