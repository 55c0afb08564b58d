"""A removal ends when nothing is left, goes on after what is unavailable, and spares what is newer."""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Row, func, insert, select, text, update

from shared.foundation import errors
from shared.foundation.content import Subject
from shared.foundation.stages import ENRICH, INDEX, RecordKind
from shared.infra.postgres import seconds
from shared.jobs import removals
from shared.jobs.removals import RECHECK_SECONDS, Family
from shared.jobs.table import job as job_table
from shared.lifecycle import erasure_queries, removal
from shared.lifecycle.removal import SCRATCH, STATE, WINDOW, WORKING, Items, Removal
from shared.memory.documents.files.store import FileStore, file_store
from shared.memory.documents.stored_files import FILES
from shared.search.index import generations, points
from shared.search.index.generations import Generation
from shared.search.index.points import IndexDocument
from tests.agent import Agent
from tests.conftest import Gateway
from workers.sweep.jobs import fail_exhausted_jobs

MEMORIES = removal.points_of(RecordKind.MEMORY)
RECEIPT = "receipt-1"


async def _begin(gateway: Gateway, items: Items) -> Removal:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return await removal.begin(tx, items)


async def _left(gateway: Gateway, rest: Removal) -> list[str]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        found = text("SELECT item FROM removal WHERE tenant = :tenant AND operation_id = :id ORDER BY item")
        return list(await tx.scalars(found, {"tenant": gateway.tenant, "id": rest.operation_id}))


async def _job(gateway: Gateway, record_id: str) -> Row[Any] | None:
    """Return the job of a removal or a record, with the seconds until it is due."""
    due = text("*, extract(epoch FROM run_at - now())::float AS due_in")
    where = (job_table.c.tenant == gateway.tenant, job_table.c.record_id == record_id)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        rows = await tx.execute(select(due).select_from(job_table).where(*where))
        job: Row[Any] | None = rows.one_or_none()
        return job


async def _put_point(gateway: Gateway, record_id: str, version: int) -> Generation:
    async with gateway.resources.postgres.across_tenants() as tx:
        (generation,) = await generations.list_generations(tx, RecordKind.MEMORY)
    document = IndexDocument(gateway.tenant, RecordKind.MEMORY, record_id, version, "plum", "plum")
    await points.upsert_points(gateway.resources.qdrant, generation.collection, [document])
    return generation


async def _versions(gateway: Gateway, generation: Generation) -> list[int]:
    of_tenant = {"must": [{"key": "tenant", "match": {"value": gateway.tenant}}]}
    body = {"filter": of_tenant, "limit": 1000, "with_payload": True}
    path = f"collections/{generation.collection}/points/scroll"
    found = (await gateway.resources.qdrant.call("POST", path, body))["points"]
    return sorted(point["payload"]["version"] for point in found)


async def test_what_is_written_down_is_due_when_the_request_is_over(gateway: Gateway) -> None:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        rest = await removal.begin(tx, {WORKING: ["session/a"]}, RECEIPT)
        due_in = text("SELECT extract(epoch FROM run_at - now())::float FROM job WHERE record_id = :id")
        assert await tx.scalar(due_in, {"id": RECEIPT}) == 5
    assert rest == Removal(gateway.tenant, RECEIPT)
    assert 0 < removal.REQUEST_SECONDS < 1, "a request answers soon"
    others = [await _begin(gateway, {STATE: []}) for _ in range(2)]
    assert len({RECEIPT, *(other.operation_id for other in others)}) == 3
    assert await _job(gateway, others[0].operation_id) is None, "nothing is to be removed"


async def test_a_request_removes_all_that_it_can_and_ends_the_job(agent: Agent, gateway: Gateway) -> None:
    await agent.put("patrol/a/note", "x")
    generation = await _put_point(gateway, "m1", 1)
    rest = await _begin(gateway, {WORKING: ["patrol/a"], MEMORIES: ["m1"], STATE: ["trip"], SCRATCH: ["pad"]})
    assert await removal.work_off(gateway.resources, rest) is None
    assert await _left(gateway, rest) == []
    assert await _job(gateway, rest.operation_id) is None
    assert await _versions(gateway, generation) == []
    assert await agent.list_keys("patrol") == []


async def test_files_are_removed_and_no_others(gateway: Gateway, tmp_path: Path) -> None:
    store, tenant = file_store(gateway.resources), gateway.tenant
    content = tmp_path / "content"
    content.write_text("marmalade", encoding="utf-8")
    for name in ("a", "b", "kept"):
        await store.put(tenant, name, content)
    await removal.work_off(gateway.resources, await _begin(gateway, {FILES: ["a", "b", "never stored"]}))
    for name, is_kept in (("a", False), ("b", False), ("kept", True)):
        assert await _is_stored(store, tenant, name) is is_kept


async def _is_stored(store: FileStore, tenant: str, name: str) -> bool:
    try:
        return b"".join([part async for part in store.open(tenant, name)]) == b"marmalade"
    except errors.NotFound:
        return False


async def test_what_is_left_after_the_time_stays_due(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_BATCH", 2)
    rest = await _begin(gateway, {STATE: ["a", "b", "c", "d", "e"]})
    assert await removal.work_off(gateway.resources, rest, time_limit=0) is None
    assert await _left(gateway, rest) == ["c", "d", "e"], "one batch at least"
    assert await _job(gateway, rest.operation_id) is not None
    assert await removal.work_off(gateway.resources, rest, time_limit=None) is None
    assert await _left(gateway, rest) == []


async def test_all_batches_of_a_thousand_are_removed_within_the_time(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    async def remove(_resources: Any, _tenant: str, session_ids: Sequence[str]) -> None:
        sizes.append(len(session_ids))

    monkeypatch.setitem(removal._REMOVERS, STATE, remove)
    rest = await _begin(gateway, {STATE: [str(number) for number in range(2001)]})
    await removal.work_off(gateway.resources, rest, time_limit=60)
    assert sizes == [1000, 1000, 1]
    assert await _left(gateway, rest) == []


async def test_an_unavailable_store_is_asked_once_and_the_others_are_cleared(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each family that is asked for would wait for a time-out: ten of them kept a request for 20 s."""
    asked: list[Family] = []

    def refuse(family: Family) -> Callable[..., Awaitable[None]]:
        async def remove(*_: Any) -> None:
            asked.append(family)
            raise errors.Unavailable("redis", "away")

        return remove

    for family in (WORKING, STATE, WINDOW):
        monkeypatch.setitem(removal._REMOVERS, family, refuse(family))
    generation = await _put_point(gateway, "m1", 1)
    rest = await _begin(gateway, {WORKING: ["patrol/a"], STATE: ["trip"], WINDOW: ["w"], MEMORIES: ["m1"]})
    failure = await removal.work_off(gateway.resources, rest)
    assert isinstance(failure, errors.Unavailable)
    assert len(asked) == 1
    assert await _left(gateway, rest) == ["patrol/a", "trip", "w"]
    assert await _versions(gateway, generation) == []
    assert await _job(gateway, rest.operation_id) is not None


async def test_a_window_is_removed_a_second_time_when_its_job_runs(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Sequence[str]] = []

    async def remove(_resources: Any, _tenant: str, session_ids: Sequence[str]) -> None:
        removed.append(session_ids)

    monkeypatch.setitem(removal._REMOVERS, WINDOW, remove)
    rest = await _begin(gateway, {WINDOW: ["trip"]})
    await removal.work_off(gateway.resources, rest)
    await removal.work_off(gateway.resources, rest)
    assert removed == [["trip"]], "not before its time"
    job = await _job(gateway, rest.operation_id)
    assert job is not None
    assert RECHECK_SECONDS < job.due_in <= RECHECK_SECONDS + 1
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(text("UPDATE removal SET removed_at = removed_at - interval '10 seconds'"))
    await removal.work_off(gateway.resources, rest, time_limit=None)
    assert removed == [["trip"], ["trip"]]
    assert await _left(gateway, rest) == []
    assert await _job(gateway, rest.operation_id) is None


async def test_the_receipt_counts_entries_and_scratch_stores(
    agent: Agent, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_BATCH", 1)
    for key in ("patrol/a/1", "patrol/a/2", "patrol/b/1"):
        await agent.put(key, "x")
    tenant = gateway.tenant
    async with gateway.resources.postgres.for_tenant(tenant) as tx:
        await erasure_queries.add(tx, RECEIPT, Subject.USER, b"x", None)
        items: Items = {WORKING: ["patrol/a", "patrol/b"], STATE: ["trip"], WINDOW: ["trip"], MEMORIES: ["m"]}
        rest = await removal.begin(tx, items, RECEIPT)
    await removal.work_off(gateway.resources, rest, time_limit=None)
    async with gateway.resources.postgres.for_tenant(tenant) as tx:
        receipt = await erasure_queries.get(tx, RECEIPT)
    assert receipt is not None
    assert receipt["counts"] == {"working_entries": 3}


async def test_a_record_that_is_newer_than_the_deletion_keeps_its_point(gateway: Gateway) -> None:
    rest = await _begin(gateway, {MEMORIES: ["m1"]})
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        items = await removals.list_items(tx, rest.operation_id, MEMORIES, 1)
    deleted_at: datetime = items["m1"]
    microseconds = int(deleted_at.timestamp() * 1_000_000)
    for version in (1, microseconds - 1, microseconds, microseconds + 1_000_000):
        generation = await _put_point(gateway, "m1", version)
    await removal.work_off(gateway.resources, rest)
    assert await _versions(gateway, generation) == [microseconds, microseconds + 1_000_000]


async def test_a_generation_that_was_dropped_does_not_keep_the_points_of_the_next(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation = await _put_point(gateway, "m1", 1)
    dropped = replace(generation, collection="loci_dropped")

    async def list_both(*_: Any) -> list[Generation]:
        return [dropped, generation]

    monkeypatch.setattr(generations, "list_generations", list_both)
    rest = await _begin(gateway, {MEMORIES: ["m1"]})
    assert await removal.work_off(gateway.resources, rest) is None
    assert await _versions(gateway, generation) == []


async def test_claims_on_deleted_records_become_invalid_and_points_are_looked_for_once_more(
    gateway: Gateway,
) -> None:
    postgres, tenant = gateway.resources.postgres, gateway.tenant
    job = {"tenant": tenant, "kind": RecordKind.MEMORY, "version": 1, "attempts": 3}
    claimed = job | {"lease_token": str(uuid4()), "run_at": func.now() + seconds(60)}
    async with postgres.for_tenant(tenant) as tx:
        for record_id, stage in itertools.product(("m1", "m2"), (ENRICH, INDEX)):
            of_stage = {"record_id": record_id, "pipeline": stage.pipeline, "stage": stage.name}
            await tx.execute(insert(job_table).values(claimed | of_stage))
    await _begin(gateway, {MEMORIES: ["m1"]})
    left = await _job(gateway, "m1")
    assert left is not None, "the index job alone"
    assert (left.stage, left.version, left.lease_token, left.attempts) == (INDEX.name, 2, None, 0)
    assert 0 < left.due_in <= removal.JOB_DELAY_SECONDS
    async with postgres.for_tenant(tenant) as tx:
        kept = select(job_table.c.lease_token).where(job_table.c.record_id == "m2")
        assert None not in list(await tx.scalars(kept)), "of another record"


async def test_a_removal_is_never_given_up_however_often_its_worker_dies(gateway: Gateway) -> None:
    resources = gateway.resources
    rest = await _begin(gateway, {STATE: ["trip"]})
    died = {
        "attempts": resources.settings.job_max_attempts,
        "run_at": func.now(),
        "lease_token": str(uuid4()),
    }
    where = (job_table.c.tenant == gateway.tenant, job_table.c.record_id == rest.operation_id)
    async with resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(update(job_table).where(*where).values(died))
    await fail_exhausted_jobs(resources)
    job = await _job(gateway, rest.operation_id)
    assert job is not None
    assert (job.attempts, job.lease_token, job.dead_at) == (0, None, None)
    assert 0 < job.due_in <= 60
