"""Who stores a copy and who deletes the original wait for each other, whichever comes first."""

import asyncio
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import Column, func, select, update

from shared.context import recheck
from shared.conversation.sessions.table import session as session_table
from shared.foundation import config
from shared.foundation.content import Subject
from shared.foundation.scope import Caller, Scope
from shared.foundation.stages import ReasonCode
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.jobs.table import job as job_table
from shared.lifecycle import erasure, erasure_queries
from shared.memory.longterm import queries as memory_queries
from shared.memory.longterm.memory import Memory
from shared.memory.longterm.table import memory as memory_table
from shared.platform.resources import Resources
from shared.platform.spend.table import charge as charge_table
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.draining import make_due
from tests.locks import wait_until_blocked
from tests.second_gateway import NO_REDIS
from workers.sweep.removals import finish_removals

Work = Callable[[Resources, str, str], Coroutine[Any, Any, Any]]


async def _erase_user(resources: Resources, tenant: str, _: str) -> None:
    caller = Caller("k", tenant, frozenset())
    await erasure.erase_user(resources, caller, "ada")


async def _go_on_erasing(resources: Resources, tenant: str, erasure_id: str) -> None:
    await erasure.resume(resources, tenant, erasure_id)


async def _begin_erasure(gateway: Gateway) -> str:
    """Write down an erasure whose rows a job is to delete."""
    tenant, erasure_id = gateway.tenant, "erasure-1"
    async with gateway.resources.postgres.for_tenant(tenant) as tx:
        digest = await erasure_queries.digest_of(tx, Subject.USER, "ada")
        await erasure_queries.add(tx, erasure_id, Subject.USER, digest, "ada")
    return erasure_id


@pytest.mark.parametrize("erase", [_erase_user, _go_on_erasing])
async def test_an_erasure_waits_for_an_import_that_is_storing(gateway: Gateway, erase: Work) -> None:
    resources, tenant = gateway.resources, gateway.tenant
    erasure_id = await _begin_erasure(gateway) if erase is _go_on_erasing else ""
    async with resources.postgres.for_tenant(tenant) as importing:
        await erasure_queries.list_last(importing, Scope(tenant, user_id="ada"))
        erasing = asyncio.ensure_future(erase(resources, tenant, erasure_id))
        await wait_until_blocked(importing, erasing)
    await erasing


@pytest.mark.parametrize("scope", [{"agent_id": "helper"}, {"user_id": "ada"}])
async def test_an_import_waits_for_the_erasure_of_its_agent_or_user(
    gateway: Gateway, scope: dict[str, str]
) -> None:
    resources, tenant = gateway.resources, gateway.tenant
    (field,) = scope
    subject = Subject(field.removesuffix("_id"))

    async def begin_import() -> None:
        async with resources.postgres.for_tenant(tenant) as importing:
            await erasure_queries.list_last(importing, Scope(tenant, **scope))

    async with resources.postgres.for_tenant(tenant) as erasing:
        await removals.lock_subject(erasing, subject, scope[field])
        task = asyncio.ensure_future(begin_import())
        await wait_until_blocked(erasing, task)
    await task


async def test_an_erasure_that_finds_nothing_new_still_stops_an_import_that_began_before(
    agent: Agent, gateway: Gateway
) -> None:
    scope = Scope(gateway.tenant, user_id="ada")
    await agent.save("Ada likes trains.", user_id="ada")
    first = await agent.request("DELETE", "/v1/users/ada")
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        before = await erasure_queries.list_last(tx, scope)
    assert (await agent.request("DELETE", "/v1/users/ada"))["id"] == first["id"]
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        assert await erasure_queries.list_last(tx, scope) != before


async def test_a_context_locks_the_sessions_whose_turns_it_shows_until_it_is_recorded(
    agent: Agent, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = gateway.resources.settings.model_copy(update={"recall_past_turns": 5})
    object.__setattr__(gateway.resources, "settings", settings)
    for session_id in ("now", "past", "other"):
        await agent.session(id=session_id)
    await agent.append_turn("past", "The jar holds marmalade.")
    free: list[str] = []
    leave_out_deleted = recheck.leave_out_deleted

    async def look(*arguments: Any) -> None:
        free.extend(await _unlocked(gateway, session_table.c.id))
        await leave_out_deleted(*arguments)

    monkeypatch.setattr(recheck, "leave_out_deleted", look)
    assert "marmalade" in str(await agent.context("now", "What does the jar hold?"))
    assert free == ["other"]


async def _unlocked(gateway: Gateway, column: Column[str]) -> list[str]:
    """Return the values of a column in the tenant's rows that no transaction has locked."""
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return list(await tx.scalars(select(column).with_for_update(skip_locked=True)))


async def test_an_erasure_locks_sessions_then_charges_then_memories(agent: Agent, gateway: Gateway) -> None:
    """All transactions lock in this order; another could end in a deadlock with them."""
    resources, tenant = gateway.resources, gateway.tenant
    session = await agent.session(user_id="ada")
    spend = {"usage_id": "u", "model": "m", "usage": {"total_tokens": 1}}
    await agent.request("POST", f"/v1/sessions/{session}/spend", json=spend, status=HTTPStatus.CREATED)
    memory = await agent.save("Ada likes trains.", user_id="ada")
    async with resources.postgres.for_tenant(tenant) as booking:
        await booking.execute(select(charge_table.c.id).with_for_update())
        erasing = asyncio.ensure_future(_erase_user(resources, tenant, ""))
        await wait_until_blocked(booking, erasing)
        assert await _unlocked(gateway, session_table.c.id) == []
        assert await _unlocked(gateway, memory_table.c.id) == [memory["id"]]
    await erasing


async def test_a_deletion_that_finds_more_to_delete_once_it_has_its_locks_begins_again(
    agent: Agent, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it waits for its locks, another transaction may archive a memory into the one it deletes."""
    merged, source = await agent.save("Ada likes trains."), await agent.save("Ada likes trams.")
    lock = memory_queries.lock

    async def archive_and_lock(tx: Transaction, ids: list[str]) -> list[Memory]:
        monkeypatch.setattr(memory_queries, "lock", lock)
        async with gateway.resources.postgres.for_tenant(tx.tenant) as merging:
            of_tenant = update(memory_table).where(memory_table.c.tenant == tx.tenant)
            is_merged = of_tenant.where(memory_table.c.id == merged["id"])
            await merging.execute(is_merged.values(derived_from=[source["id"]]))
            is_source = of_tenant.where(memory_table.c.id == source["id"])
            await merging.execute(is_source.values(archived_at=func.now(), state="archived"))
        return await lock(tx, ids)

    monkeypatch.setattr(memory_queries, "lock", archive_and_lock)
    await agent.request("DELETE", f"/v1/memories/{merged['id']}")
    await agent.request("GET", f"/v1/memories/{source['id']}", status=HTTPStatus.NOT_FOUND)


async def test_a_removal_that_a_worker_could_not_finish_is_tried_again(
    agent: Agent, gateway: Gateway, make_settings: Callable[..., config.Settings]
) -> None:
    await agent.session(id="trip", store_types=["tmp"])
    await agent.request("PUT", "/v1/sessions/trip/kv/note", json={"value": "x"})
    settings = gateway.resources.settings.model_copy(update=NO_REDIS)
    async with running_gateway(settings, gateway.tenant) as cut_off:
        assert (await cut_off.client.delete("/v1/sessions/trip")).status_code == 200
        await make_due(gateway.resources)
        await finish_removals(cut_off.resources)
    is_removal = (job_table.c.tenant == gateway.tenant, job_table.c.kind == "removal")
    columns = (job_table.c.lease_token, job_table.c.reason_code, job_table.c.run_at > func.now())
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        (job,) = await tx.execute(select(*columns).where(*is_removal))
        assert tuple(job) == (None, ReasonCode.UNAVAILABLE, True)
        await tx.execute(update(job_table).where(*is_removal).values(run_at=func.now()))
    refusal = await agent.client.post("/v1/sessions", json={"id": "trip"})
    assert refusal.status_code == HTTPStatus.CONFLICT, "its state would be removed with the old one's"
    await finish_removals(gateway.resources)
    await agent.session(id="trip")
