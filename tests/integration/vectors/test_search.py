"""Dense and sparse search."""

from math import log

import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.models import FieldCondition, Filter, MatchValue, PointStruct, QueryRequest

from tests.integration.vectors.conftest import connected, create, numbers, point_id, unit, words

pytestmark = pytest.mark.asyncio

TENANT_A = Filter(must=[FieldCondition(key="tenant", match=MatchValue(value="a"))])


def idf(documents: int, containing: int) -> float:
    """Return the inverse document frequency as Qdrant computes it, in the form of BM25."""
    return log((documents - containing + 0.5) / (containing + 0.5) + 1)


async def fill(client: AsyncQdrantClient, name: str) -> None:
    """Add points; term 1 is rare for tenant a and frequent for tenant b, and term 2 the reverse."""
    texts = {
        1: ("a", words(1, 2)),
        2: ("a", words(2)),
        3: ("a", words(2, 3)),
        4: ("b", words(1)),
        5: ("b", words(1)),
    }
    await client.upsert(
        name,
        [
            PointStruct(
                id=point_id(number),
                vector={"dense": unit(0, lean=number / 10), "bm25": terms},
                payload={"tenant": tenant, "n": number},
            )
            for number, (tenant, terms) in texts.items()
        ],
    )


async def test_dense_hits_come_nearest_first_with_their_cosine(
    client: AsyncQdrantClient, collection: str
) -> None:
    await fill(client, collection)
    hits = (await client.query_points(collection, query=unit(0), using="dense", limit=3)).points
    assert numbers(hits) == [1, 2, 3]
    assert [hit.score for hit in hits] == pytest.approx(
        [1 / (1 + (n / 10) ** 2) ** 0.5 for n in (1, 2, 3)], abs=1e-5
    )


async def test_sparse_scores_use_the_idf_of_the_collection(
    client: AsyncQdrantClient, own_collection: str
) -> None:
    # A new collection, because both servers count deleted points until they have removed them from disk.
    await fill(client, own_collection)
    hits = (await client.query_points(own_collection, query=words(2, 3), using="bm25")).points
    assert numbers(hits)[0] == 3
    assert {n: hit.score for n, hit in zip(numbers(hits), hits, strict=True)} == pytest.approx(
        {3: idf(5, 3) + idf(5, 1), 1: idf(5, 3), 2: idf(5, 3)}, abs=1e-5
    )


async def test_sparse_scores_can_use_the_idf_of_one_tenants_points(local_url: str) -> None:
    # Server 1.16 ignores the corpus without an error. Deleted points do not count in a corpus.
    corpus = models.SearchParams(idf=models.IdfCorpusParams(corpus=TENANT_A))
    async with connected(local_url) as client:
        await create(client, "corpus")
        await fill(client, "corpus")
        await client.delete("corpus", [point_id(3)])
        result = await client.query_points(
            "corpus", query=words(1), using="bm25", query_filter=TENANT_A, search_params=corpus
        )
    assert numbers(result.points) == [1]
    assert result.points[0].score == pytest.approx(idf(2, 1), abs=1e-5)


async def test_a_batch_returns_the_results_in_the_order_of_the_searches(
    client: AsyncQdrantClient, collection: str
) -> None:
    await fill(client, collection)
    payload_fields = models.PayloadSelectorInclude(include=["n"])
    nearest = models.NearestQuery(nearest=words(1))
    sparse, dense, none = await client.query_batch_points(
        collection,
        [
            QueryRequest(query=nearest, using="bm25", filter=TENANT_A, limit=9, with_payload=payload_fields),
            QueryRequest(query=unit(0), using="dense", filter=TENANT_A, limit=2, with_vector=["bm25"]),
            QueryRequest(query=words(77), using="bm25", limit=2),
        ],
    )
    assert (numbers(sparse.points), numbers(dense.points), none.points) == ([1], [1, 2], [])
    assert (sparse.points[0].payload, sparse.points[0].vector) == ({"n": 1}, None)
    assert (dense.points[0].payload, dense.points[0].vector) == (None, {"bm25": words(1, 2)})


async def test_limit_offset_and_threshold_cut_the_same_ranking(
    client: AsyncQdrantClient, collection: str
) -> None:
    await fill(client, collection)
    params = models.SearchParams(hnsw_ef=64, exact=True)
    page = await client.query_points(
        collection, query=unit(0), using="dense", limit=2, offset=1, search_params=params
    )
    near = await client.query_points(collection, query=unit(0), using="dense", score_threshold=0.97)
    assert (numbers(page.points), numbers(near.points)) == ([2, 3], [1, 2])


async def test_a_zero_query_vector_is_no_error(client: AsyncQdrantClient, collection: str) -> None:
    await fill(client, collection)
    hits = (await client.query_points(collection, query=[0.0] * 8, using="dense")).points
    assert {hit.score for hit in hits} == {0.0}


async def test_a_write_is_found_by_the_next_search(client: AsyncQdrantClient, collection: str) -> None:
    for number in range(20):
        point = PointStruct(id=point_id(number), vector={"bm25": words(100 + number)})
        await client.upsert(collection, [point])
        hits = (await client.query_points(collection, query=words(100 + number), using="bm25")).points
        assert numbers(hits) == [number]
