"""MM7: a long text is stored in turns that end before the lease, and nothing of it is found before."""

import time
from typing import Any

import pytest
from sqlalchemy import delete, select, update

from shared.foundation.stages import PARSE_DOCUMENT, PUBLISH_DOCUMENT
from shared.infra.transaction import Transaction
from shared.jobs.table import job
from shared.lifecycle import delete_document
from shared.memory.documents import chunk_queries, parsed_chunk_queries
from shared.memory.documents.table import parsed_chunk
from shared.search.index.writer import IndexWriter
from tests.integration.documents.conftest import Library, paragraphs
from workers.documents import parsed_text, publish
from workers.documents import process as processing
from workers.runtime.drain import claim, drain
from workers.sweep import jobs as sweep_jobs

CHUNKS = 5


@pytest.fixture
def turns_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each turn end after its first batch, which is one chunk."""
    monkeypatch.setattr(processing, "BATCH", 1)
    monkeypatch.setattr(processing, "PART_OF_LEASE", 0)


@pytest.mark.usefixtures("turns_of_one")
async def test_each_turn_gives_the_job_back_and_goes_on_where_the_one_before_ended(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    await library.add("The old harbour.", source="a")
    uploaded = await library.upload(paragraphs("new harbour", CHUNKS), source="a")
    seen: list[tuple[float, int]] = []
    store, read, reads = processing._Storing._store, parsed_text._read, 0

    async def count_reads(*arguments: object) -> object:
        nonlocal reads
        reads += 1
        return await read(*arguments)  # type: ignore[arg-type]

    async def look(*arguments: object) -> object:
        document = await library.get(uploaded["id"])
        async with library.gateway.resources.postgres.for_tenant(library.gateway.tenant) as tx:
            is_job = (job.c.stage == "parse_document", job.c.tenant == library.gateway.tenant)
            attempts = await tx.scalar(select(job.c.attempts).where(*is_job))
        seen.append((document["progress"], int(attempts or 0)))
        assert await library.texts("harbour") == ["The old harbour."]
        return await store(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(parsed_text, "_read", count_reads)
    monkeypatch.setattr(processing._Storing, "_store", look)
    inserted: list[int] = []
    insert = chunk_queries.insert_chunks

    async def count(*arguments: object) -> list[str]:
        ids = await insert(*arguments)  # type: ignore[arg-type]
        inserted.append(len(ids))
        return ids

    monkeypatch.setattr(chunk_queries, "insert_chunks", count)
    await library.process()
    progress = [share for share, _ in seen]
    assert progress == sorted(set(progress))
    assert (len(seen), reads) == (CHUNKS, 1)
    assert {attempts for _, attempts in seen} == {1}, "a turn uses no attempt"
    assert inserted == [1] * CHUNKS
    ready = await library.get(uploaded["id"])
    assert (ready["state"], ready["chunk_count"]) == ("ready", CHUNKS)
    assert await library.rows() == {"document_chunk": CHUNKS, "document_file": 1, "points": CHUNKS}


@pytest.mark.usefixtures("turns_of_one")
async def test_what_the_index_lacked_in_an_earlier_turn_is_waited_for(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A first version: one that replaces another waits for the embedder in any case.
    write, calls = IndexWriter.write_through, 0

    async def be_away_at_first(self: IndexWriter, *arguments: Any) -> bool:
        nonlocal calls
        calls += 1
        return calls > 1 and await write(self, *arguments)

    monkeypatch.setattr(IndexWriter, "write_through", be_away_at_first)
    uploaded = await library.upload(paragraphs("new harbour", CHUNKS), source="a")
    for _ in range(CHUNKS):
        await drain(library.gateway.resources, PARSE_DOCUMENT, processing.process_batch)
    document = await library.get(uploaded["id"])
    assert (calls, document["state"]) == (CHUNKS, "processing"), "all is stored"
    assert await library.texts("harbour") == []
    await library.process()
    assert len(await library.texts("harbour")) == CHUNKS


async def test_a_turn_ends_after_half_a_lease(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processing, "BATCH", 1)
    began = time.monotonic()
    ends: list[float] = []
    run = processing._Storing.run

    async def note_end(self: processing._Storing) -> None:
        ends.append(self.turn_end)
        await run(self)

    monkeypatch.setattr(processing._Storing, "run", note_end)
    assert (await library.add(paragraphs("harbour", 2)))["state"] == "ready"
    half = library.gateway.resources.settings.job_lease / 2
    assert [began + half <= end <= time.monotonic() + half for end in ends] == [True]


@pytest.mark.usefixtures("turns_of_one")
async def test_of_documents_of_two_tenants_each_has_its_turns(library: Library) -> None:
    async with await library.gateway.new_client(f"{library.gateway.tenant}-other") as client:
        first = await library.upload(paragraphs("harbour", CHUNKS))
        sent = await library.send(paragraphs("harbour", CHUNKS), client=client)
        await library.process()  # until the first tenant has no job; the other may have one left
        for _ in range(CHUNKS):
            await library.make_due()
            await library.process_once()
        other = (await client.get(f"/v1/documents/{sent.json()['id']}")).json()
    assert [(await library.get(first["id"]))["state"], other["state"]] == ["ready", "ready"]


async def test_the_chunks_of_a_long_replaced_version_are_deleted_some_at_a_time(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete_document, "DROPPED_CHUNKS", 2)
    dropped: list[int] = []
    delete_chunks = chunk_queries.delete_chunks

    async def count(tx: Transaction, ids: list[str]) -> None:
        dropped.append(len(ids))
        await delete_chunks(tx, ids)

    monkeypatch.setattr(chunk_queries, "delete_chunks", count)
    await library.add(paragraphs("old harbour", CHUNKS), source="a")
    await library.add("The new harbour.", source="a")
    assert await library.texts("harbour") == ["The new harbour."]
    assert dropped == [2, 2, 1]
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


async def test_a_document_stays_ready_if_the_deletion_of_its_earlier_version_ends_its_worker_too_often(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete_document, "DROPPED_CHUNKS", 2)
    resources = library.gateway.resources
    await library.add(paragraphs("old harbour", CHUNKS), source="a")
    new = await library.upload("The new harbour.", source="a")
    await drain(resources, PARSE_DOCUMENT, processing.process_batch)
    await resources.index_writer.close()
    await publish.publish_batch(resources, await claim(resources, PUBLISH_DOCUMENT, 1))
    assert (await library.get(new["id"]))["state"] == "ready"
    async with resources.postgres.for_tenant(library.gateway.tenant) as tx:
        used_up = {"attempts": resources.settings.job_max_attempts}
        changed = await tx.execute(update(job).where(job.c.stage == "publish_document").values(used_up))
    assert changed.rowcount == 1
    assert await sweep_jobs.fail_exhausted_jobs(resources) == 1
    ready = await library.get(new["id"])
    assert (ready["state"], ready["reason_code"]) == ("ready", None)
    await library.process()
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


@pytest.mark.usefixtures("turns_of_one")
async def test_a_long_version_that_fails_or_is_replaced_half_stored_leaves_nothing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete_document, "DROPPED_CHUNKS", 2)
    await library.add("The old harbour.", source="a")
    for end in (b"\x89PNG\r\n\x1a\n", b"The newest harbour."):
        await _store_half(library, monkeypatch)
        assert (await library.rows())["document_chunk"] == 1 + 3
        assert await library.parsed_chunks() == CHUNKS - 3
        await library.add(end, source="a")
        assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}
        assert await library.parsed_chunks() == 0
    assert await library.texts("harbour") == ["The newest harbour."]


async def _store_half(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upload a text of which three chunks are stored when its worker stops."""
    store, calls = processing._Storing._store, 0

    async def stop(self: processing._Storing, *arguments: Any) -> bool | None:
        nonlocal calls
        calls += 1
        return None if calls > 3 else await store(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(processing._Storing, "_store", stop)
        await library.upload(paragraphs(f"half harbour {time.monotonic()}", CHUNKS), source="a")
        await library.process_once()


async def test_whoever_keeps_the_text_of_a_file_and_dies_has_kept_nothing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsed_text, "BATCH", 2)
    insert, calls = parsed_chunk_queries.insert, 0

    async def die(*arguments: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("the machine is gone")
        await insert(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(parsed_chunk_queries, "insert", die)
    uploaded = await library.upload(paragraphs("harbour", CHUNKS))
    resources = library.gateway.resources
    with pytest.raises(RuntimeError, match="machine"):
        await processing.process(resources, (await claim(resources, PARSE_DOCUMENT, 1))[0])
    assert await library.parsed_chunks() == 4
    await library.make_due()
    await library.process()
    assert (await library.get(uploaded["id"]))["state"] == "ready"
    assert await library.rows() == {"document_chunk": CHUNKS, "document_file": 1, "points": CHUNKS}
    assert await library.parsed_chunks() == 0


@pytest.mark.usefixtures("turns_of_one")
async def test_chunks_that_an_older_release_has_stored_in_part_are_read_anew(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _store_half(library, monkeypatch)
    async with library.gateway.resources.postgres.for_tenant(library.gateway.tenant) as tx:
        await tx.execute(delete(parsed_chunk))
    await library.make_due()
    await library.process()
    [document] = (await library.agent.request("GET", "/v1/documents"))["results"]
    assert (document["state"], document["version"]) == ("ready", 2)
    assert await library.rows() == {"document_chunk": CHUNKS, "document_file": 1, "points": CHUNKS}


async def test_a_job_of_an_earlier_version_publishes_nothing(library: Library) -> None:
    resources = library.gateway.resources
    await library.add("The old harbour.", source="a")
    uploaded = await library.upload(paragraphs("new harbour", CHUNKS), source="a")
    async with resources.postgres.for_tenant(library.gateway.tenant) as tx:
        stage = {"stage": PUBLISH_DOCUMENT.name, "version": uploaded["version"] - 1}
        await tx.execute(update(job).where(job.c.stage == PARSE_DOCUMENT.name).values(stage))
    await drain(resources, PUBLISH_DOCUMENT, publish.publish_batch)
    assert (await library.get(uploaded["id"]))["state"] == "pending"
    assert await library.texts("harbour") == ["The old harbour."]
