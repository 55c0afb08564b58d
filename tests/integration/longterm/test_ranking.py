"""LT7, LT8, LT12, IX4: how hits are ranked, and what an answer says when a part of the search is away."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, make_due
from tests.integration.longterm.conftest import beside
from tests.journey.agent import Agent
from tests.standins.behaviours import Hang, NotANumber, Status, WrongDimension, ZeroVector
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

TRAIN, FERRY = "Ada likes travelling by train", "Bob likes travelling by ferry"


@pytest.fixture
async def embedding(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """A gateway with an embedding model, and two entries with their vectors."""
    settings = make_settings(
        apart=True, embedding_base_url=models.url, embedding_model="m", query_embedding_timeout=0.5
    )
    async with running_gateway(settings, tenant) as gateway:
        agent = Agent(gateway.client, tenant)
        for content in (TRAIN, FERRY):
            await agent.save(content)
        await embedded(gateway)
        yield gateway


async def embedded(gateway: Gateway) -> None:
    await gateway.resources.index_writer.close()
    await make_due(gateway.resources)
    await drain(gateway.resources)


def agent_of(gateway: Gateway) -> Agent:
    return Agent(gateway.client, gateway.tenant)


@pytest.mark.parametrize("strategy", ["blend", "mean", "rrf", "bm25"])
async def test_every_strategy_has_a_name_and_finds_the_best_first(embedding: Gateway, strategy: str) -> None:
    answer = await agent_of(embedding).search("travelling by train", strategy=strategy, explain=True)
    assert answer["results"][0]["content"] == TRAIN
    assert (answer["stages"], answer["degraded"]) == (["bm25", "dense"], [])
    scores = [memory["score"] for memory in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert answer["results"][0]["scores"]["score"] == scores[0]


async def test_an_unknown_strategy_is_refused_and_the_known_are_named(agent: Agent) -> None:
    body = {"query": "x", "strategy": "magic"}
    problem = await agent.request(
        "POST", "/v1/memories/search", json=body, status=HTTPStatus.UNPROCESSABLE_ENTITY
    )
    assert problem["errors"] == [{"field": "strategy", "rule": "must be one of blend, bm25, mean, rrf"}]


async def test_scores_are_explained_only_when_asked_for(agent: Agent) -> None:
    await agent.save(TRAIN)
    assert "scores" not in (await agent.search("train"))["results"][0]
    assert "keyword" in (await agent.search("train", explain=True))["results"][0]["scores"]


async def test_mean_scores_are_shares_of_the_best_and_cosines(embedding: Gateway) -> None:
    """LT7: the sources' rule, weighed by importance 0.5 (LT8)."""
    answer = await agent_of(embedding).search(TRAIN, strategy="mean", explain=True)
    best = answer["results"][0]["scores"]
    assert best["keyword"] == 1
    assert best["dense"] == pytest.approx(1, abs=1e-3)
    assert best["score"] == pytest.approx(0.75, abs=1e-3)


async def test_a_vector_below_the_least_similarity_is_no_hit_and_one_at_it_is(embedding: Gateway) -> None:
    agent = agent_of(embedding)
    vague = "ferry on an unheard of day somewhere"
    payload = (await agent.search(vague, strategy="mean", min_similarity=-1, explain=True))["results"]
    cosine = {memory["content"]: memory["scores"]["dense"] for memory in payload}
    assert 0 < cosine[FERRY] < 0.5
    bounded = (await agent.search(vague, strategy="mean", explain=True))["results"]
    assert [(memory["content"], memory["scores"]["dense"]) for memory in bounded] == [(FERRY, 0)], (
        "0.5 is its default"
    )
    at_it = (await agent.search(vague, strategy="mean", min_similarity=cosine[FERRY], explain=True))[
        "results"
    ]
    assert at_it[0]["scores"]["dense"] == cosine[FERRY]
    over = {"strategy": "mean", "min_similarity": cosine[FERRY] + 1e-6, "explain": True}
    assert (await agent.search(vague, **over))["results"][0]["scores"]["dense"] == 0
    unbounded = (await agent.search(vague, strategy="rrf", explain=True))["results"]
    assert unbounded[0]["scores"]["dense"] > 0


async def test_a_vector_alone_finds_what_no_word_does(embedding: Gateway, models: ModelServer) -> None:
    agent = agent_of(embedding)
    await agent.save("kittens")
    await embedded(embedding)
    found = (await agent.search("KITTENS!", strategy="mean"))["results"]
    assert [memory["content"] for memory in found] == ["kittens"]
    assert models.embedding_calls[-1].texts == ["KITTENS!"]


@pytest.mark.parametrize(
    "failure", [Status(500), Status(429), Status(401), WrongDimension(), NotANumber(), ZeroVector(), Hang()]
)
async def test_a_query_that_cannot_be_embedded_is_answered_by_keywords_and_says_so(
    embedding: Gateway, models: ModelServer, failure: Behaviour
) -> None:
    models.embedding_default = failure
    answer = await agent_of(embedding).search("train")
    assert (answer["stages"], answer["degraded"]) == (["bm25"], ["dense"])
    assert [memory["content"] for memory in answer["results"]] == [TRAIN]
    models.release()


async def test_after_a_failure_the_endpoint_is_not_called_for_a_moment(
    embedding: Gateway, models: ModelServer
) -> None:
    """A black-holed endpoint must not cost every search its time-out."""
    models.embedding_default = Hang()
    agent = agent_of(embedding)
    before = len(models.embedding_calls)
    for _ in range(5):
        assert (await agent.search("train"))["degraded"] == ["dense"]
    assert len(models.embedding_calls) == before + 1
    models.release()


async def test_a_model_that_stopped_answering_does_not_stop_saves(
    embedding: Gateway, models: ModelServer
) -> None:
    models.stop()
    agent = agent_of(embedding)
    await agent.save("a new train of thought")
    answer = await agent.search("thought")
    assert answer["degraded"] == ["dense"]
    assert [memory["content"] for memory in answer["results"]] == ["a new train of thought"]


async def test_with_index_and_model_both_configured_and_the_index_away_both_are_named(
    embedding: Gateway, unused_url: str
) -> None:
    async with beside(embedding, qdrant_url=f"http://{unused_url}") as agent:
        answer = await agent.search("travelling by train")
    assert (answer["stages"], answer["degraded"]) == (["postgres"], ["index", "dense"])
    assert answer["results"][0]["content"] == TRAIN


async def test_without_the_index_saves_succeed_and_the_same_entry_comes_first(
    agent: Agent, without_index: Agent, gateway: Gateway
) -> None:
    """IX3, IX4."""
    for content in (TRAIN, FERRY, "Carol likes staying at home", "The train to Prague leaves at nine"):
        await agent.save(content)
    late = await without_index.save("Dora collects train tickets")
    for query in ("train", "train to Prague", "who likes the ferry?", "tickets"):
        away = await without_index.search(query)
        assert away["degraded"] == ["index"]
        await embedded(gateway)
        healthy = await agent.search(query)
        assert healthy["degraded"] == []
        assert away["results"][0]["id"] == healthy["results"][0]["id"]
    assert (await agent.search("tickets"))["results"][0]["id"] == late["id"]


@pytest.mark.parametrize("strategy", ["blend", "mean", "rrf", "bm25"])
async def test_importance_weighs_the_score_by_half_to_whole(agent: Agent, strategy: str) -> None:
    """LT8: by 0.5 + 0.5 · importance."""
    for importance in (0.0, 0.5, 1.0):
        await agent.save(f"marmalade {int(importance * 10):02}", importance=importance)
    results = (await agent.search("marmalade", strategy=strategy, explain=True))["results"]
    boosts = {memory["importance"]: memory["scores"]["importance"] for memory in results}
    assert boosts == {0.0: 0.5, 0.5: 0.75, 1.0: 1.0}
    if strategy != "rrf":  # whose ranks tell even equals apart
        assert [memory["importance"] for memory in results] == [1.0, 0.5, 0.0]


async def test_a_changed_importance_weighs_at_once(agent: Agent) -> None:
    low, high = await agent.save("marmalade one"), await agent.save("marmalade two", importance=0.6)
    assert (await agent.search("marmalade"))["results"][0]["id"] == high["id"]
    await agent.request("PATCH", f"/v1/memories/{low['id']}", json={"importance": 1.0})
    assert (await agent.search("marmalade"))["results"][0]["id"] == low["id"]


@pytest.mark.parametrize(
    "labels",
    [
        {"category": "anti-patterns/release", "tags": ["anti-pattern"]},
        {"category": "Anti-Patterns/release"},
        {"category": "general", "tags": ["anti-pattern"]},
    ],
)
async def test_an_anti_pattern_that_matches_is_never_crowded_out_of_a_recall(
    agent: Agent, labels: dict[str, Any]
) -> None:
    """LT12. There are more of the others than the index is asked for."""
    memories: list[dict[str, Any]] = [
        {"content": f"deploy deploy deploy step {n}", "importance": 1.0} for n in range(110)
    ]
    await agent.request("POST", "/v1/memories/batch", json={"memories": memories}, status=HTTPStatus.CREATED)
    warning = {**labels, "importance": 0.0}
    words = "Don't deploy on a Friday evening because nobody is there to help — instead wait until Monday"
    kept = await agent.save(words, **warning)
    other = await agent.save("Don't eat yellow snow — instead drink tea", **warning)
    recalled = (await agent.context(await agent.session(), "deploy"))["recalled"]
    assert len(recalled) == 8
    assert recalled[-1]["id"] == kept["id"]
    assert other["id"] not in {memory["id"] for memory in recalled}
    searched = (await agent.search("deploy", limit=8))["results"]
    assert kept["id"] not in {memory["id"] for memory in searched}, "a search is not a recall"
