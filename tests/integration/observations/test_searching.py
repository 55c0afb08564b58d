"""SE10: observations are found by what they say, at once, with and without the index."""

from http import HTTPStatus

import pytest

from tests.badinput import problem
from tests.conftest import Gateway, serving
from tests.draining import drain, make_due
from tests.integration.observations.conftest import SEARCH, found, observe
from tests.journey.agent import Agent, word


async def test_an_observation_is_found_by_keyword_at_once_by_its_content_tags_and_data(agent: Agent) -> None:
    session = await agent.session()
    said, tagged, held = word(), word(), word()
    content = f"She said {said}."
    await observe(agent, session, content, tags=[tagged], data={"place": {"name": held}})
    await observe(agent, session, "Something else was said.")
    for query in (said, tagged, held):
        assert await found(agent, query) == [content]
    assert await found(agent, word()) == []


async def test_a_result_has_the_observation_its_score_and_on_request_every_part_of_it(agent: Agent) -> None:
    kept = await observe(agent, await agent.session(), "The kettle is broken.")
    answer = await agent.ask("POST", SEARCH, json={"query": "kettle", "explain": True})
    (one,) = answer["results"]
    assert one.items() >= kept.items()
    assert one["score"] == one["scores"]["score"] > 0
    assert (answer["stages"], answer["degraded"]) == (["bm25"], [])
    plain = await agent.ask("POST", SEARCH, json={"query": "kettle"})
    assert "scores" not in plain["results"][0]


async def test_a_vector_is_added_later_and_finds_what_no_keyword_does(embedding: Gateway) -> None:
    agent = Agent(embedding.client, embedding.tenant)
    await observe(agent, await agent.session(), "The kettle is broken.")
    await make_due(embedding.resources)
    await drain(embedding.resources)
    answer = await agent.ask("POST", SEARCH, json={"query": "kettle broken", "explain": True})
    assert (answer["stages"], answer["degraded"]) == (["bm25", "dense"], [])
    assert answer["results"][0]["scores"]["dense"] > 0


@pytest.mark.parametrize("away", [False, True], ids=["index", "rows"])
async def test_a_search_keeps_to_its_filters_and_to_what_the_asker_may_see(
    gateway: Gateway, agent: Agent, nowhere: str, *, away: bool
) -> None:
    """Without the index, too: then from the rows' own words, and the answer says so."""
    secret = word()
    common, ada = await agent.session(), await agent.session(user_id="ada")
    other, bob = await agent.session(agent_id="other"), await agent.session(user_id="bob")
    for name, session in {"common": common, "ada": ada, "other": other, "bob": bob}.items():
        for kind in ("fact", "reflection"):
            await observe(agent, session, f"{secret} {name} {kind}", kind)
    settings = gateway.resources.settings
    changed = {"qdrant_url": f"http://{nowhere}"} if away else {}
    async with serving(settings.model_copy(update=changed), gateway.tenant) as served:
        asking = Agent(served.client, served.tenant)

        async def names(**filters: object) -> set[str]:
            answer = await asking.ask("POST", SEARCH, json={"query": secret, **filters})
            stated = (["postgres"], ["index"]) if away else (["bm25"], [])
            assert (answer["stages"], answer["degraded"]) == stated
            return {one["content"].removeprefix(f"{secret} ") for one in answer["results"]}

        assert await names() == {"common fact", "common reflection"}
        assert await names(kind="fact") == {"common fact"}
        assert await names(user_id="ada", kind="fact") == {"common fact", "ada fact"}
        assert await names(user_id="ada", session_id=ada) == {"ada fact", "ada reflection"}
        assert await names(agent_id="other", kind="reflection") == {"other reflection"}
        assert await names(session_id=bob) == set()
        assert len(await names(user_id="ada", limit=3)) == 3
        async with await served.another(agent_id="default", user_id="ada") as client:
            seen = (await client.post(SEARCH, json={"query": secret, "kind": "fact"})).json()["results"]
            assert {one["user_id"] for one in seen} == {None, "ada"}
            refused = await client.post(SEARCH, json={"query": secret, "user_id": "bob"})
            assert refused.status_code == HTTPStatus.FORBIDDEN


async def test_what_is_observed_while_the_index_is_away_is_found_at_once_and_indexed_when_it_is_back(
    gateway: Gateway, agent: Agent, nowhere: str
) -> None:
    """IX4."""
    secret = word()
    session = await agent.session()
    settings = gateway.resources.settings.model_copy(update={"qdrant_url": f"http://{nowhere}"})
    async with serving(settings, gateway.tenant) as served:
        cut_off = Agent(served.client, served.tenant)
        await observe(cut_off, session, f"{secret} was here")
        answer = await cut_off.ask("POST", SEARCH, json={"query": f"{secret} ?"})
        assert [one["content"] for one in answer["results"]] == [f"{secret} was here"]
        assert answer["degraded"] == ["index"]
        nothing = await cut_off.ask("POST", SEARCH, json={"query": "?"})
        assert nothing["results"] == []
    assert await found(agent, secret) == []
    await make_due(gateway.resources)
    await drain(gateway.resources)
    assert await found(agent, secret) == [f"{secret} was here"]


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
async def test_a_search_that_breaks_a_rule_is_refused_by_field(
    agent: Agent, field: str, body: dict[str, object]
) -> None:
    assert problem.names(await agent.client.post(SEARCH, json=body), field)
