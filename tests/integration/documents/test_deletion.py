"""MM7: a document of many chunks is deleted at once for whoever looks, and in portions in the databases."""

from http import HTTPStatus

import pytest

from shared.foundation.stages import REMOVE
from shared.infra.transaction import Transaction
from shared.lifecycle import delete_document, erasure
from shared.memory.documents import chunk_queries
from tests.agent import Json
from tests.integration.documents.conftest import DOCUMENTS, Library, paragraphs
from tests.second_gateway import NO_REDIS, NOWHERE, beside
from workers.runtime.drain import claim

CHUNKS = 9


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a document of nine chunks be a long one."""
    monkeypatch.setattr(delete_document, "DROPPED_CHUNKS", 2)
    monkeypatch.setattr(erasure, "_BATCH", 3)


async def delete_long(library: Library) -> tuple[Json, Json]:
    """Add and delete a document of nine chunks; return it and the answer."""
    added = await library.add(paragraphs("harbour", CHUNKS), source="a")
    path = f"{DOCUMENTS}/{added['id']}"
    return added, await library.agent.request("DELETE", path, status=HTTPStatus.ACCEPTED)


async def test_nothing_of_a_long_document_is_found_from_the_answer_on_and_a_job_deletes_the_rest(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    portions: list[int] = []
    delete_chunks = chunk_queries.delete_chunks

    async def count(tx: Transaction, ids: list[str]) -> None:
        portions.append(len(ids))
        await delete_chunks(tx, ids)

    monkeypatch.setattr(chunk_queries, "delete_chunks", count)
    added, answer = await delete_long(library)
    assert (answer["deleted"], answer["state"]) == (True, "pending")
    assert await library.texts("harbour") == []
    await library.agent.request("GET", f"{DOCUMENTS}/{added['id']}", status=HTTPStatus.NOT_FOUND)
    assert (await library.agent.request("GET", DOCUMENTS))["results"] == []
    assert (await library.rows())["document_chunk"] == CHUNKS - 2
    path = f"/v1/erasures/{answer['erasure_id']}"
    receipt = await library.agent.request("GET", path)
    assert (receipt["subject"], receipt["state"], receipt["stores"]["postgres"]) == (
        "document",
        "pending",
        "pending",
    )
    await library.process()
    assert portions == [2, 3, 3, 1]
    assert await library.rows() == {"document_chunk": 0, "document_file": 0, "points": 0}
    receipt = await library.agent.request("GET", path)
    assert (receipt["state"], receipt["erased"]["document_chunks"], receipt["erased"]["documents"]) == (
        "done",
        CHUNKS,
        1,
    )
    assert "harbour" not in str(receipt)


async def test_a_deletion_goes_on_after_the_death_of_the_worker_that_had_begun_it(library: Library) -> None:
    _, answer = await delete_long(library)
    resources = library.gateway.resources
    assert len(await claim(resources, REMOVE, 10)) == 1  # and its worker dies
    assert await erasure._erase_batch(resources, library.gateway.tenant, answer["erasure_id"])
    await library.make_due()
    await library.process()
    assert await library.rows() == {"document_chunk": 0, "document_file": 0, "points": 0}
    receipt = await library.agent.request("GET", f"/v1/erasures/{answer['erasure_id']}")
    assert (receipt["state"], receipt["erased"]["document_chunks"]) == ("done", CHUNKS)


@pytest.mark.parametrize("away", [NO_REDIS, {"qdrant_url": f"http://{NOWHERE}"}], ids=["Redis", "Qdrant"])
async def test_a_long_document_is_deleted_while_a_database_is_away(library: Library, away: Json) -> None:
    """The answer comes all the same, nothing is found from then on, and workers do the rest later."""
    added = await library.add(paragraphs("harbour", CHUNKS), source="a")
    async with beside(library.gateway, **away) as cut_off:
        answer = await cut_off.request("DELETE", f"{DOCUMENTS}/{added['id']}", status=HTTPStatus.ACCEPTED)
    assert (answer["deleted"], answer["state"]) == (True, "pending")
    assert await library.texts("harbour") == []
    await library.make_due()
    await library.process()
    assert await library.rows() == {"document_chunk": 0, "document_file": 0, "points": 0}
    receipt = await library.agent.request("GET", f"/v1/erasures/{answer['erasure_id']}")
    assert (receipt["state"], receipt["erased"]["document_chunks"]) == ("done", CHUNKS)


async def test_the_same_file_is_uploaded_anew_while_the_deleted_one_goes(library: Library) -> None:
    deleted, _ = await delete_long(library)
    repeated = await library.upload(paragraphs("harbour", CHUNKS), source="a")
    assert repeated["id"] != deleted["id"]
    await library.process()
    assert len(await library.texts("harbour")) == CHUNKS
    assert await library.rows() == {"document_chunk": CHUNKS, "document_file": 1, "points": CHUNKS}


async def test_a_long_document_that_its_source_has_left_is_not_found_from_then_on(library: Library) -> None:
    await library.add(paragraphs("old harbour", CHUNKS), source="a")
    await library.add("The new harbour.", source="b")
    await library.upload("The new harbour.", source="a")
    assert await library.texts("harbour") == ["The new harbour."]
    await library.process()
    assert await library.rows() == {"document_chunk": 1, "document_file": 1, "points": 1}


async def test_the_receipt_is_read_by_keys_of_the_tenant_and_by_no_bound_one(library: Library) -> None:
    _, answer = await delete_long(library)
    path = f"/v1/erasures/{answer['erasure_id']}"
    async with await library.gateway.new_client(rights=["read"]) as client:
        assert (await client.get(path)).status_code == HTTPStatus.OK
    async with await library.gateway.new_client(user_id="ada") as client:
        assert (await client.get(path)).status_code == HTTPStatus.NOT_FOUND
    async with await library.gateway.new_client(f"{library.gateway.tenant}-other") as client:
        assert (await client.get(path)).status_code == HTTPStatus.NOT_FOUND
