"""What belongs to a memory or a session goes with it: cached vectors, points, windows, namespaces."""

from collections.abc import Sequence

import pytest
from sqlalchemy import func, select

from shared.conversation.observations import queries as observation_queries
from shared.conversation.sessions import queries as session_queries
from shared.foundation.content import Subject
from shared.foundation.scope import Scope
from shared.foundation.stages import EXPIRE_WINDOW, SUMMARIZE, RecordKind
from shared.jobs import queries as job_queries
from shared.jobs.table import job as job_table
from shared.lifecycle import deletion, removal
from shared.lifecycle.deletion import Deletion
from shared.memory.longterm import maintenance_queries
from shared.memory.skills import hit_queries
from shared.search.index import embedding_cache
from shared.search.index.table import embedding_cache as cache_table
from tests.agent import Agent
from tests.conftest import Gateway

JAR, LID, NOTE = "The jar holds marmalade.", "The lid is red.", "The label is torn."
OTHER = "The shelf is empty."


async def _cache(gateway: Gateway, *texts: str) -> None:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        vectors = {text: [0.5] for text in texts}
        await embedding_cache.save(tx, "e", vectors)


async def _count_cached(gateway: Gateway) -> int:
    where = cache_table.c.tenant == gateway.tenant
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return int(await tx.scalar(select(func.count()).where(where)) or 0)


async def _texts(gateway: Gateway, session: str, memory_id: str) -> list[str]:
    """Return the texts of a session's observations and of a memory as they are embedded."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        noted = await observation_queries.embedding_texts(tx, [session])
        memories = await maintenance_queries.list_embedding_texts(tx, [memory_id])
        return [*noted.values(), *memories]


async def test_cached_vectors_go_with_the_texts_and_no_others(agent: Agent, gateway: Gateway) -> None:
    memory = await agent.save(JAR)
    session = await agent.session()
    await agent.append_turn(session, LID)
    path = f"/v1/sessions/{session}/observations"
    await agent.request("POST", path, json={"kind": "fact", "content": NOTE}, status=201)
    texts = await _texts(gateway, session, memory["id"])
    assert len(texts) == 2
    await _cache(gateway, *texts, LID, OTHER)
    await agent.request("DELETE", f"/v1/memories/{memory['id']}")
    assert await _count_cached(gateway) == 3
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert await _count_cached(gateway) == 1


async def _add_sessions(gateway: Gateway, ids: Sequence[str], **options: bool) -> Deletion:
    rows = Deletion(gateway.tenant)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        sessions = await session_queries.lock(tx, ids)
        await deletion.add_sessions(tx, rows, sessions, **options)
    return rows


@pytest.mark.parametrize("kind", ["patrol", "subagent"])
async def test_the_namespace_of_a_session_goes_with_it_and_a_shared_one_if_that_is_asked_for(
    agent: Agent, gateway: Gateway, kind: str
) -> None:
    own, shared = await agent.session(id="trip"), await agent.session(kind=kind, name="nightly")
    rows = await _add_sessions(gateway, [own, shared])
    assert rows.items[removal.WORKING] == {"session/trip"}
    rows = await _add_sessions(gateway, [own, shared], shared_namespaces=True)
    assert rows.items[removal.WORKING] == {"session/trip", f"{kind}/nightly"}
    assert rows.items[removal.WINDOW] == rows.items[removal.STATE] == {own, shared}
    assert rows.subjects == {Subject.SESSION: sorted([own, shared])}
    assert rows.embedding_texts == [], "nothing is cached"


async def test_the_windows_that_show_a_memory_go_with_it(agent: Agent, gateway: Gateway) -> None:
    memory = await agent.save(JAR)
    session = await agent.session()
    await agent.context(session, "What does the jar hold?")
    await _cache(gateway, OTHER)
    rows = Deletion(gateway.tenant)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await deletion.add_memories(tx, rows, [])
        assert (rows.subjects, rows.items) == ({}, {})
        await deletion.add_memories(tx, rows, [memory["id"]])
    assert rows.subjects == {Subject.MEMORY: [memory["id"]]}
    assert rows.items == {removal.points_of(RecordKind.MEMORY): {memory["id"]}, removal.WINDOW: {session}}
    assert rows.embedding_texts == [JAR]


@pytest.mark.parametrize("is_cached", [False, True])
async def test_cached_vectors_of_preferences_and_skills_go_with_them(
    agent: Agent, gateway: Gateway, *, is_cached: bool
) -> None:
    content = {"content": "Turn the lid.", "summary": "How the jar is opened."}
    await agent.request("PUT", "/v1/skills/open-jar", json=content)
    session = await agent.session()
    await agent.context(session, "How is the jar opened?")
    if is_cached:
        await _cache(gateway, OTHER)
    rows = Deletion(gateway.tenant)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await deletion.add_skills(tx, rows, [])
        await deletion.add_preferences(tx, rows, {})
        assert (rows.subjects, rows.items) == ({}, {})
        [skill] = await hit_queries.list_catalogue(tx, Scope(gateway.tenant, "default"))
        await deletion.add_skills(tx, rows, [skill.searchable])
        await deletion.add_preferences(tx, rows, {"p1": "tea", "p2": None})
    assert rows.subjects == {Subject.SKILL: [skill.id], Subject.PREFERENCE: ["p1", "p2"]}
    assert rows.items == {
        removal.points_of(RecordKind.SKILL): {skill.id},
        removal.points_of(RecordKind.PREFERENCE): {"p1"},
        removal.WINDOW: {session},
    }
    assert rows.embedding_texts == (["open jar\nHow the jar is opened.", "tea"] if is_cached else [])


async def test_the_work_on_a_session_ends_with_it(agent: Agent, gateway: Gateway) -> None:
    deleted, kept = await agent.session(), await agent.session()
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        for stage in (EXPIRE_WINDOW, SUMMARIZE):
            versions = {deleted: 1, kept: 1}
            await job_queries.enqueue(tx, gateway.tenant, RecordKind.SESSION, stage, versions)
    await agent.request("DELETE", f"/v1/sessions/{deleted}")
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        of_tenant = select(job_table.c.record_id).where(
            job_table.c.tenant == gateway.tenant, job_table.c.kind == RecordKind.SESSION
        )
        assert list(await tx.scalars(of_tenant)) == [kept, kept]
