"""Collections, their description, and aliases."""

import warnings
from uuid import uuid4

import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from tests.integration.vectors.conftest import connected, create, numbers, point_id, words

pytestmark = pytest.mark.asyncio


@pytest.fixture
def collection(own_collection: str) -> str:
    """Return a collection for one test, because these tests count its points."""
    return own_collection


def create_alias(alias: str, target: str) -> models.CreateAliasOperation:
    return models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=target, alias_name=alias)
    )


async def alias_targets(client: AsyncQdrantClient) -> dict[str, str]:
    answer = await client.get_aliases()
    return {item.alias_name: item.collection_name for item in answer.aliases}


async def test_a_new_collection_exists_is_listed_and_describes_itself(
    client: AsyncQdrantClient, collection: str
) -> None:
    assert await client.collection_exists(collection)
    assert collection in [item.name for item in (await client.get_collections()).collections]
    info = await client.get_collection(collection)
    assert (info.status, info.points_count) == (models.CollectionStatus.GREEN, 0)
    assert info.config.params.vectors == {
        "dense": models.VectorParams(size=8, distance=models.Distance.COSINE)
    }
    assert info.config.params.sparse_vectors == {
        "bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)
    }


async def test_payload_indexes_are_described(client: AsyncQdrantClient, collection: str) -> None:
    schema = (await client.get_collection(collection)).payload_schema
    kinds = {name: index.data_type.value for name, index in schema.items()}
    assert kinds == {
        "tenant": "keyword",
        "tags": "keyword",
        "at": "datetime",
        "n": "integer",
        "weight": "float",
    }
    assert isinstance(schema["tenant"].params, models.KeywordIndexParams)
    assert schema["tenant"].params.is_tenant


async def test_creating_the_same_index_twice_is_no_error(client: AsyncQdrantClient, collection: str) -> None:
    await client.create_payload_index(collection, "tags", models.PayloadSchemaType.KEYWORD)


async def test_a_collection_may_have_no_dense_vector(client: AsyncQdrantClient) -> None:
    name = f"c-{uuid4()}"
    await create(client, name, dense=False)
    await client.upsert(name, [models.PointStruct(id=point_id(1), vector={"bm25": words(1)})])
    assert numbers((await client.query_points(name, query=words(1), using="bm25")).points) == [1]
    await client.delete_collection(name)


async def test_a_second_collection_of_the_same_name_is_a_conflict(
    client: AsyncQdrantClient, collection: str
) -> None:
    with pytest.raises(UnexpectedResponse) as error_info:
        await create(client, collection)
    assert error_info.value.status_code == 409


async def test_deleting_a_collection_deletes_its_aliases(client: AsyncQdrantClient) -> None:
    name, alias = f"c-{uuid4()}", f"a-{uuid4()}"
    await create(client, name)
    await client.update_collection_aliases([create_alias(alias, name)])
    assert await client.delete_collection(name)
    assert not await client.collection_exists(name)
    assert not await client.collection_exists(alias)
    assert alias not in await alias_targets(client)
    assert not await client.delete_collection(name)


async def test_an_alias_stands_for_its_collection_everywhere(
    client: AsyncQdrantClient, collection: str
) -> None:
    alias = f"a-{uuid4()}"
    await client.update_collection_aliases([create_alias(alias, collection)])
    await client.upsert(alias, [models.PointStruct(id=point_id(1), vector={"bm25": words(1)})])
    assert await client.collection_exists(alias)
    assert (await client.count(collection)).count == 1
    assert numbers((await client.query_points(alias, query=words(1), using="bm25")).points) == [1]
    answer = await client.get_collection_aliases(collection)
    assert [item.alias_name for item in answer.aliases] == [alias]


async def test_actions_on_aliases_are_applied_in_order(client: AsyncQdrantClient, collection: str) -> None:
    first, second = f"a-{uuid4()}", f"a-{uuid4()}"
    rename = models.RenameAlias(old_alias_name=first, new_alias_name=second)
    await client.update_collection_aliases(
        [create_alias(first, collection), models.RenameAliasOperation(rename_alias=rename)]
    )
    assert {k: v for k, v in (await alias_targets(client)).items() if k in {first, second}} == {
        second: collection
    }
    remove = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=second))
    await client.update_collection_aliases([remove, remove])
    assert second not in await alias_targets(client)


async def test_an_alias_of_a_missing_collection_is_404_and_one_named_as_a_collection_409(
    client: AsyncQdrantClient, collection: str
) -> None:
    with pytest.raises(UnexpectedResponse) as missing_error:
        await client.update_collection_aliases([create_alias("a", "missing")])
    with pytest.raises(UnexpectedResponse) as conflict_error:
        await client.update_collection_aliases([create_alias(collection, collection)])
    assert (missing_error.value.status_code, conflict_error.value.status_code) == (404, 409)


async def test_refused_alias_actions_change_nothing(local_url: str) -> None:
    # The real server keeps the actions before the refused one.
    name, alias = f"c-{uuid4()}", f"a-{uuid4()}"
    async with connected(local_url) as client:
        await create(client, name)
        with pytest.raises(UnexpectedResponse):
            await client.update_collection_aliases([create_alias(alias, name), create_alias("b", "missing")])
        assert alias not in await alias_targets(client)


async def test_the_local_server_reports_a_version_that_the_client_accepts(local_url: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client = AsyncQdrantClient(url=local_url)
        info = await client.info()
        await client.close()
    assert "Loci" in info.title
    assert info.version.startswith("1.20.")
