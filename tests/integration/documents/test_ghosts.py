"""IX5, MM7: points that nobody should have written, or that are left, are no hits and hide none."""

from typing import Any
from uuid import uuid4

import pytest

from shared.foundation.stages import RecordKind
from shared.search.index.points import IndexDocument, _point
from tests.integration.documents.conftest import Library

QUERY = "harbour gate"
FORGED = 250
"""More than a search takes as candidates, and all better matches than the document."""


async def forge(library: Library, record_ids: list[str], version: int = 1) -> None:
    """Write points of this tenant that match better than anything else and name these records."""
    resources, tenant = library.gateway.resources, library.gateway.tenant
    generation = await resources.search_index.live(RecordKind.DOCUMENT_CHUNK)
    points: list[dict[str, Any]] = []
    for record_id in record_ids:
        forged = IndexDocument(tenant, RecordKind.DOCUMENT_CHUNK, record_id, version, QUERY, QUERY)
        points.append(_point(forged) | {"id": str(uuid4())})
    async with resources.qdrant.call_guard():
        path = f"collections/{generation.collection}/points?wait=true"
        await resources.qdrant.call("PUT", path, {"points": points})


@pytest.fixture
async def document_id(library: Library) -> str:
    """Return the id of a document that matches the query a little, in its second version."""
    await library.add("The old gate of the harbour was green.", source="a")
    filler = "and much else that this long text says of other matters " * 10
    return str((await library.add(f"The harbour has a red gate, {filler}", source="a"))["id"])


async def test_points_of_an_earlier_version_and_of_no_record_leave_room_for_what_is_found(
    library: Library, document_id: str
) -> None:
    await forge(library, [f"{document_id}/1/{position}" for position in range(FORGED)])
    await forge(library, [f"{uuid4()}/1/0" for _ in range(FORGED)])
    [found] = (await library.search(QUERY))["results"]
    assert (found["document_id"], "red gate" in found["text"]) == (document_id, True)


async def test_a_point_that_names_the_chunk_of_another_tenant_yields_nothing(
    library: Library, document_id: str
) -> None:
    async with await library.gateway.new_client(f"{library.gateway.tenant}-other") as client:
        other = (await library.send("Their harbour gate is secret.", client=client)).json()
        await library.process()
        await forge(library, [f"{other['id']}/1/0"] * FORGED)
        [found] = (await library.search(QUERY))["results"]
        theirs = (await client.post("/v1/documents/search", json={"query": QUERY})).json()["results"]
    assert found["document_id"] == document_id
    assert [result["document_id"] for result in theirs] == [other["id"]]


async def test_a_point_of_another_version_than_the_chunk_has_does_not_stand_for_it_or_hide_it(
    library: Library, document_id: str
) -> None:
    unrelated = await library.add("Tea is served at four.")
    await forge(library, [f"{unrelated['id']}/1/0", f"{document_id}/2/0"], version=99)
    [found] = (await library.search(QUERY))["results"]
    assert found["document_id"] == document_id
