"""MM7: an upload that is repeated: after a failure, after a change of the settings, and by its key."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import text

from shared.memory.documents.files.store import file_store
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.integration.documents.conftest import DOCUMENTS, Library, paragraphs
from workers.documents import process as processing

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
KEY = {"idempotency-key": "upload-1"}


async def test_a_failed_document_is_tried_again_as_its_next_version_with_the_file_that_is_sent(
    library: Library,
) -> None:
    uploaded = await library.upload("The office opens at nine.", "a.txt", source="a")
    resources, tenant = library.gateway.resources, library.gateway.tenant
    async with resources.postgres.for_tenant(tenant) as tx:
        file_id = await tx.scalar(text("SELECT name FROM document_file"))
    await file_store(resources).delete(tenant, file_id)
    await library.process()
    failed = await library.get(uploaded["id"])
    assert (failed["state"], failed["version"]) == ("failed", 1)
    assert "upload it again" in failed["reason"]
    repeated = await library.upload("The office opens at nine.", "b.txt", source="b")
    assert (repeated["id"], repeated["state"], repeated["version"]) == (uploaded["id"], "pending", 2)
    assert (repeated["source"], repeated["other_sources"], repeated["file_name"]) == ("a", ["b"], "b.txt")
    await library.process()
    assert await library.texts("office") == ["The office opens at nine."]
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


async def test_a_file_that_fails_again_is_the_next_version_each_time(library: Library) -> None:
    versions = [(await library.add(PICTURE, "a.png"))["version"] for _ in range(3)]
    assert versions == [1, 2, 3]
    assert (await library.rows())["document_file"] == 1


@asynccontextmanager
async def with_settings(library: Library, **changes: Any) -> AsyncIterator[Library]:
    """Serve the same documents with other settings."""
    settings = library.gateway.resources.settings.model_copy(update=changes)
    async with running_gateway(settings, library.gateway.tenant) as gateway:
        yield Library(Gateway(gateway.client, gateway.resources, gateway.tenant), Agent(gateway.client, ""))


async def test_the_same_bytes_are_cut_anew_when_the_size_of_chunks_has_changed(library: Library) -> None:
    content = paragraphs("harbour", 4)
    first = await library.add(content, source="a")
    assert (await library.upload(content, source="a"))["version"] == 1
    async with with_settings(library, document_chunk_chars=300) as changed:
        repeated = await changed.upload(content, source="a")
        assert (repeated["id"], repeated["version"], repeated["state"]) == (first["id"], 2, "pending")
        assert repeated["searchable"]
        await changed.process()
        assert await changed.upload(content, source="b") == await changed.get(first["id"])
        ready = await changed.get(first["id"])
    assert (ready["state"], ready["other_sources"]) == ("ready", ["b"])
    assert ready["chunk_count"] > first["chunk_count"]
    assert (await library.rows())["document_file"] == 1


async def test_the_same_bytes_are_read_anew_by_a_newer_parser(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await library.add("The office opens at nine.")
    monkeypatch.setattr("shared.memory.documents.chunk.PARSER_VERSION", 1000)
    assert (await library.add("The office opens at nine."))["version"] == first["version"] + 1
    assert (await library.add("The office opens at nine."))["version"] == first["version"] + 1


async def test_a_size_of_chunks_that_changes_while_they_are_stored_leaves_no_mixture(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processing, "BATCH", 1)
    monkeypatch.setattr(processing, "PART_OF_LEASE", 0)
    store, calls = processing._Storing._store, 0

    async def stop_at_third(self: processing._Storing, *arguments: Any) -> bool | None:
        nonlocal calls
        calls += 1
        return None if calls == 3 else await store(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(processing._Storing, "_store", stop_at_third)
        uploaded = await library.upload(paragraphs("harbour", 4))
        await library.process_once()
    assert (await library.rows())["document_chunk"] == 2
    async with with_settings(library, document_chunk_chars=300) as changed:
        await changed.make_due()
        await changed.process()
        ready = await changed.get(uploaded["id"])
        texts = await changed.texts("harbour handbook everybody", limit=100)
    assert (ready["state"], ready["version"]) == ("ready", 2)
    assert max(map(len, texts)) <= 300
    assert (await library.rows())["document_chunk"] == ready["chunk_count"]


async def test_a_repeated_upload_with_its_key_gets_the_same_answer_and_another_file_is_a_conflict(
    library: Library,
) -> None:
    client = library.gateway.client
    first = await _send(library, "The office opens at nine.", "a.txt", "wiki")
    assert first.status_code == HTTPStatus.ACCEPTED, first.text
    await library.process()
    repeated = await _send(library, "The office opens at nine.", "a.txt", "wiki")
    assert (repeated.status_code, repeated.json()) == (HTTPStatus.ACCEPTED, first.json())
    for other in (("The office opens at ten.", "a.txt", "wiki"), ("The office opens at nine.", "a.txt", "x")):
        assert (await _send(library, *other)).status_code == HTTPStatus.CONFLICT
    assert await library.texts("office") == ["The office opens at nine."]
    await client.delete(f"{DOCUMENTS}/{first.json()['id']}")
    erased = await _send(library, "The office opens at nine.", "a.txt", "wiki")
    assert (erased.status_code, "erased" in erased.text) == (HTTPStatus.CONFLICT, True)
    assert (await library.rows())["document_file"] == 0


async def test_uploads_at_once_with_one_key_store_one_file(library: Library) -> None:
    sent = [_send(library, f"The office opens at {hour}.", "a.txt", "wiki") for hour in (9, 9, 10, 10)]
    codes = [response.status_code for response in await asyncio.gather(*sent)]
    assert HTTPStatus.ACCEPTED in codes
    assert set(codes) <= {HTTPStatus.ACCEPTED, HTTPStatus.CONFLICT}
    await library.process()
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


async def test_a_key_of_another_form_is_refused_before_the_file_is_read(library: Library) -> None:
    sent = await library.gateway.client.post(
        DOCUMENTS, files={"file": ("a", b"x")}, headers={"idempotency-key": "x" * 256}
    )
    assert sent.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Idempotency-Key" in sent.json()["detail"]


async def _send(library: Library, content: str, name: str, source: str) -> Any:
    files = {"file": (name, content.encode())}
    return await library.gateway.client.post(DOCUMENTS, files=files, data={"source": source}, headers=KEY)
