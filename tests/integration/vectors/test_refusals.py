"""Invalid and unsupported requests are refused with a reason, never ignored."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from tests.integration.vectors.conftest import connected, create, point_id, unit, words

pytestmark = pytest.mark.asyncio

ID = point_id(1)
INVALID_FOR_BOTH: dict[str, tuple[str, str, Any]] = {
    "a vector of another size": ("PUT", "/points", {"points": [{"id": ID, "vector": {"dense": [1.0]}}]}),
    "a vector of an unknown name": ("PUT", "/points", {"points": [{"id": ID, "vector": {"other": [1.0]}}]}),
    "an invalid id": ("PUT", "/points", {"points": [{"id": "one", "vector": {}}]}),
    "a term twice": (
        "PUT",
        "/points",
        {"points": [{"id": ID, "vector": {"bm25": {"indices": [1, 1], "values": [1, 1]}}}]},
    ),
    "more values than terms": (
        "PUT",
        "/points",
        {"points": [{"id": ID, "vector": {"bm25": {"indices": [1], "values": [1, 1]}}}]},
    ),
    "text in a vector": ("PUT", "/points", {"points": [{"id": ID, "vector": {"dense": ["a"] * 8}}]}),
    "no points": ("PUT", "/points", {"points": []}),
    "deleting nothing": ("POST", "/points/delete", {"points": []}),
    "neither ids nor filter": ("POST", "/points/payload", {"payload": {}}),
    "vectors of no points": ("PUT", "/points/vectors", {"points": []}),
    "a limit of 0": ("POST", "/points/query", {"query": unit(0), "using": "dense", "limit": 0}),
    "a query of another size": ("POST", "/points/query", {"query": [1.0], "using": "dense"}),
    "a query by an unknown vector": ("POST", "/points/query", {"query": unit(0), "using": "other"}),
    "a dense query of sparse vectors": ("POST", "/points/query", {"query": unit(0), "using": "bm25"}),
    "an unknown clause": ("POST", "/points/count", {"filter": {"most": []}}),
    "an unknown condition": ("POST", "/points/count", {"filter": {"must": [{"key": "n", "rang": {}}]}}),
    "an invalid time": (
        "POST",
        "/points/count",
        {"filter": {"must": [{"key": "at", "range": {"gt": "soon"}}]}},
    ),
    "an unknown kind of index": ("PUT", "/index", {"field_name": "n", "field_schema": "words"}),
    "a list as the kind of an index": (
        "PUT",
        "/index",
        {"field_name": "n", "field_schema": {"type": ["bool"]}},
    ),
}
UNSUPPORTED_LOCALLY: dict[str, tuple[str, str, Any]] = {
    "an unknown key": ("POST", "/points/count", {"where": {}}),
    "fusion": ("POST", "/points/query", {"query": {"fusion": "rrf"}, "using": "dense"}),
    "prefetch": ("POST", "/points/query", {"prefetch": [], "query": unit(0), "using": "dense"}),
    "a query by id": ("POST", "/points/query", {"query": ID, "using": "dense"}),
    "text search in payloads": (
        "POST",
        "/points/count",
        {"filter": {"must": [{"key": "n", "match": {"text": "a"}}]}},
    ),
    "a text index": ("PUT", "/index", {"field_name": "n", "field_schema": "text"}),
    "a conditional upsert": ("PUT", "/points", {"points": [{"id": ID, "vector": {}}], "update_filter": {}}),
    "ordering": ("POST", "/points/scroll", {"order_by": "n"}),
    "a path": ("POST", "/facet", {"key": "n"}),
    "a parameter": ("POST", "/points/count?shard=1", {}),
}


async def send(url: str, method: str, path: str, body: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
        path = path if "?" in path or method == "POST" else f"{path}?wait=true"
        return await http.request(method, path, json=body)


@pytest.mark.parametrize("case", INVALID_FOR_BOTH)
async def test_an_invalid_request_is_refused_with_its_reason(
    qdrant_url: str, collection: str, case: str
) -> None:
    method, path, body = INVALID_FOR_BOTH[case]
    path = f"{path}?wait=true" if path.startswith("/points/vectors/") else path
    response = await send(qdrant_url, method, f"/collections/{collection}{path}", body)
    assert response.status_code in (400, 422)
    assert response.json()["status"]["error"]


@pytest.mark.parametrize("distance", ["Near", ["Cosine"], {"Cosine": 1}, 1])
async def test_a_collection_with_an_unknown_distance_is_refused(local_url: str, distance: Any) -> None:
    definition = {"vectors": {"dense": {"size": 8, "distance": distance}}}
    response = await send(local_url, "PUT", f"/collections/c-{uuid4()}", definition)
    assert response.status_code == 400
    assert "vectors.dense.distance" in response.json()["status"]["error"]


async def test_a_collection_that_the_engine_cannot_create_does_not_prevent_the_next(local_url: str) -> None:
    params = {"size": 8, "distance": "Cosine"}
    refused, created = [
        await send(local_url, "PUT", f"/collections/c-{uuid4()}", {"vectors": {name: params}})
        for name in ("no\0folder", "dense")
    ]
    assert (refused.status_code, created.status_code) == (500, 200)


@pytest.mark.parametrize("case", UNSUPPORTED_LOCALLY)
async def test_the_local_server_refuses_what_it_does_not_support(local_url: str, case: str) -> None:
    # The real server supports these requests, or ignores what it does not know.
    async with connected(local_url) as client:
        if not await client.collection_exists("refusals"):
            await create(client, "refusals")
    method, path, body = UNSUPPORTED_LOCALLY[case]
    response = await send(local_url, method, f"/collections/refusals{path}", body)
    assert response.status_code == 400
    assert "support" in response.json()["status"]["error"] or "must" in response.json()["status"]["error"]


async def test_a_body_that_is_not_json_is_refused(qdrant_url: str, collection: str) -> None:
    async with httpx.AsyncClient(base_url=qdrant_url, trust_env=False) as http:
        response = await http.post(
            f"/collections/{collection}/points/count",
            content=b"{bad",
            headers={"content-type": "application/json"},
        )
    assert response.status_code == 400
    assert "Format error in JSON body" in response.json()["status"]["error"]


async def test_every_operation_on_a_missing_collection_is_404(client: AsyncQdrantClient) -> None:
    point = models.PointStruct(id=ID, vector={"bm25": words(1)})
    for operation in (
        client.get_collection("missing"),
        client.upsert("missing", [point]),
        client.delete("missing", [ID]),
        client.update_vectors("missing", [models.PointVectors(id=ID, vector={"dense": unit(0)})]),
        client.query_points("missing", query=words(1), using="bm25"),
        client.query_batch_points("missing", [models.QueryRequest(query=words(1), using="bm25")]),
        client.retrieve("missing", [ID]),
        client.scroll("missing"),
        client.count("missing"),
        client.create_payload_index("missing", "n", models.PayloadSchemaType.INTEGER),
    ):
        with pytest.raises(UnexpectedResponse) as error_info:
            await operation
        assert error_info.value.status_code == 404
        assert b"doesn't exist" in error_info.value.content


async def test_a_refused_point_is_not_stored(client: AsyncQdrantClient, collection: str) -> None:
    wrong = models.PointStruct(id=point_id(2), vector={"dense": [1.0]})
    with pytest.raises(UnexpectedResponse):
        await client.upsert(collection, [wrong])
    assert (await client.count(collection)).count == 0


async def test_deleting_a_vector_of_an_unknown_name_is_refused(
    client: AsyncQdrantClient, collection: str
) -> None:
    await client.upsert(collection, [models.PointStruct(id=ID, vector={"bm25": words(1)})])
    with pytest.raises(UnexpectedResponse) as error_info:
        await client.delete_vectors(collection, ["other"], [ID])
    assert error_info.value.status_code == 400
