"""SE10: observations are search_contents by their words at once, with and without the index."""

from http import HTTPStatus

import pytest

from tests.agent import Agent, random_word
from tests.badinput import problem
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, make_due
from tests.integration.observations.conftest import SEARCH, add_observation, search_contents


async def test_an_observation_is_found_at_once_by_keywords_of_its_content_tags_and_data(agent: Agent) -> None:
    session = await agent.session()
    in_content, in_tags, in_data = random_word(), random_word(), random_word()
    content = f"She said {in_content}."
    await add_observation(agent, session, content, tags=[in_tags], data={"place": {"name": in_data}})
    await add_observation(agent, session, "Something else was said.")
    for query in (in_content, in_tags, in_data):
        assert await search_contents(agent, query) == [content]
    assert await search_contents(agent, random_word()) == []


async def test_a_result_has_the_observation_its_score_and_with_explain_the_parts_of_the_score(
    agent: Agent,
) -> None:
    observation = await add_observation(agent, await agent.session(), "The kettle is broken.")
    response = await agent.request("POST", SEARCH, json={"query": "kettle", "explain": True})
    (result,) = response["results"]
    assert result.items() >= observation.items()
    assert result["score"] == result["scores"]["score"] > 0
    assert (response["stages"], response["degraded"]) == (["bm25"], [])
    unexplained = await agent.request("POST", SEARCH, json={"query": "kettle"})
    assert "scores" not in unexplained["results"][0]


async def test_the_newer_of_two_observations_that_contradict_each_other_stands_first(agent: Agent) -> None:
    session = await agent.session()
    older = await add_observation(agent, session, "The kettle of the kitchen works.")
    newer = await add_observation(agent, session, "The kettle of the kitchen does not work any more.")
    response = await agent.request("POST", SEARCH, json={"query": "kettle of the kitchen", "explain": True})
    assert [result["id"] for result in response["results"]] == [newer["id"], older["id"]]
    assert response["results"][0]["scores"]["latest_above"] == older["id"]


async def test_an_embedding_is_added_later_and_used_by_the_dense_channel(embedding: Gateway) -> None:
    agent = Agent(embedding.client, embedding.tenant)
    await add_observation(agent, await agent.session(), "The kettle is broken.")
    await make_due(embedding.resources)
    await drain(embedding.resources)
    response = await agent.request("POST", SEARCH, json={"query": "kettle broken", "explain": True})
    assert (response["stages"], response["degraded"]) == (["bm25", "dense"], [])
    assert response["results"][0]["scores"]["dense"] > 0


@pytest.mark.parametrize("is_index_down", [False, True], ids=["index", "rows"])
async def test_a_search_returns_only_observations_that_match_its_filters_and_are_visible_to_the_caller(
    gateway: Gateway, agent: Agent, unused_url: str, *, is_index_down: bool
) -> None:
    """Without the index, Postgres is searched and the response reports that."""
    secret = random_word()
    common, ada = await agent.session(), await agent.session(user_id="ada")
    other, bob = await agent.session(agent_id="other"), await agent.session(user_id="bob")
    for name, session in {"common": common, "ada": ada, "other": other, "bob": bob}.items():
        for kind in ("fact", "reflection"):
            await add_observation(agent, session, f"{secret} {name} {kind}", kind)
    settings = gateway.resources.settings
    changed = {"qdrant_url": unused_url} if is_index_down else {}
    async with running_gateway(settings.model_copy(update=changed), gateway.tenant) as served:
        searcher = Agent(served.client, served.tenant)

        async def names(**filters: object) -> set[str]:
            response = await searcher.request("POST", SEARCH, json={"query": secret, **filters})
            expected = (["postgres"], ["index"]) if is_index_down else (["bm25"], [])
            assert (response["stages"], response["degraded"]) == expected
            return {result["content"].removeprefix(f"{secret} ") for result in response["results"]}

        assert await names() == {"common fact", "common reflection"}
        assert await names(kind="fact") == {"common fact"}
        assert await names(user_id="ada", kind="fact") == {"common fact", "ada fact"}
        assert await names(user_id="ada", session_id=ada) == {"ada fact", "ada reflection"}
        assert await names(agent_id="other", kind="reflection") == {"other reflection"}
        assert await names(session_id=bob) == set()
        assert len(await names(user_id="ada", limit=3)) == 3
        async with await served.new_client(agent_id="default", user_id="ada") as client:
            results = (await client.post(SEARCH, json={"query": secret, "kind": "fact"})).json()["results"]
            assert {result["user_id"] for result in results} == {None, "ada"}
            response = await client.post(SEARCH, json={"query": secret, "user_id": "bob"})
            assert response.status_code == HTTPStatus.FORBIDDEN


async def test_ix4_an_observation_added_without_the_index_is_found_at_once_and_indexed_later(
    gateway: Gateway, agent: Agent, unused_url: str
) -> None:
    secret = random_word()
    session = await agent.session()
    settings = gateway.resources.settings.model_copy(update={"qdrant_url": unused_url})
    async with running_gateway(settings, gateway.tenant) as served:
        agent_without_index = Agent(served.client, served.tenant)
        await add_observation(agent_without_index, session, f"{secret} was here")
        response = await agent_without_index.request("POST", SEARCH, json={"query": f"{secret} ?"})
        assert [result["content"] for result in response["results"]] == [f"{secret} was here"]
        assert response["degraded"] == ["index"]
        response = await agent_without_index.request("POST", SEARCH, json={"query": "?"})
        assert response["results"] == []
    response = await agent.request("POST", SEARCH, json={"query": secret})
    assert (response["results"], response["degraded"]) == ([], ["index"]), "its point is still to be written"
    await make_due(gateway.resources)
    await drain(gateway.resources)
    assert await search_contents(agent, secret) == [f"{secret} was here"]


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("query", {}),
        ("query", {"query": ""}),
        ("query", {"query": 7}),
        ("query", {"query": "q" * 16_001}),
        ("kind", {"query": "q", "kind": "rumour"}),
        ("limit", {"query": "q", "limit": 0}),
        ("limit", {"query": "q", "limit": 101}),
        ("agent_id", {"query": "q", "agent_id": " "}),
        ("order", {"query": "q", "order": "asc"}),
    ],
)
async def test_an_invalid_search_is_rejected_with_its_field(
    agent: Agent, field: str, body: dict[str, object]
) -> None:
    assert problem.names_violation(await agent.client.post(SEARCH, json=body), field)
