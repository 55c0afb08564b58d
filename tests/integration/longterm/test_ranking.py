"""LT7, LT8, LT12, IX4: ranking of hits, and responses when a part of the search is unavailable."""

from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.draining import process_all
from tests.second_gateway import beside
from tests.standins.behaviours import Hang, NotANumber, Status, WrongDimension, ZeroVector
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

TRAIN, FERRY = "Ada likes travelling by train", "Bob likes travelling by ferry"


@pytest.fixture
async def embedding_gateway(
    make_settings: Callable[..., config.Settings], database: dict[str, str], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Yield a gateway with an embedding model, and two memories with their embeddings."""
    settings = make_settings(
        **database, embedding_base_url=models.url, embedding_model="m", query_embedding_timeout=0.5
    )
    async with running_gateway(settings, tenant) as gateway:
        agent = Agent(gateway.client, tenant)
        for content in (TRAIN, FERRY):
            await agent.save(content)
        await process_all(gateway.resources)
        yield gateway


def agent_of(gateway: Gateway) -> Agent:
    return Agent(gateway.client, gateway.tenant)


@pytest.mark.parametrize("strategy", ["blend", "mean", "rrf", "bm25"])
async def test_every_strategy_finds_the_best_match_first(embedding_gateway: Gateway, strategy: str) -> None:
    response = await agent_of(embedding_gateway).search(
        "travelling by train", strategy=strategy, explain=True
    )
    assert response["results"][0]["content"] == TRAIN
    assert (response["stages"], response["degraded"]) == (["bm25", "dense"], [])
    scores = [memory["score"] for memory in response["results"]]
    assert scores == sorted(scores, reverse=True)
    assert response["results"][0]["scores"]["score"] == scores[0]


async def test_an_unknown_strategy_is_refused_with_the_list_of_strategies(agent: Agent) -> None:
    body = {"query": "x", "strategy": "magic"}
    problem = await agent.request(
        "POST", "/v1/memories/search", json=body, status=HTTPStatus.UNPROCESSABLE_ENTITY
    )
    assert problem["errors"] == [{"field": "strategy", "rule": "must be one of blend, bm25, mean, rrf"}]


async def test_scores_are_explained_only_on_request(agent: Agent) -> None:
    await agent.save(TRAIN)
    assert "scores" not in (await agent.search("train"))["results"][0]
    assert "keyword" in (await agent.search("train", explain=True))["results"][0]["scores"]


async def test_the_mean_combines_relative_keyword_scores_with_cosines(embedding_gateway: Gateway) -> None:
    """LT7: the mean of both is multiplied by 0.75, because the importance is 0.5 (LT8)."""
    response = await agent_of(embedding_gateway).search(TRAIN, strategy="mean", explain=True)
    best = response["results"][0]["scores"]
    assert best["keyword"] == 1
    assert best["dense"] == pytest.approx(1, abs=1e-3)
    assert best["score"] == pytest.approx(0.75, abs=1e-3)


async def test_a_vector_counts_as_a_hit_from_the_minimum_similarity_on(embedding_gateway: Gateway) -> None:
    agent = agent_of(embedding_gateway)
    vague_query = "ferry on an unheard of day somewhere"
    results = (await agent.search(vague_query, strategy="mean", min_similarity=-1, explain=True))["results"]
    cosine = {memory["content"]: memory["scores"]["dense"] for memory in results}
    assert 0 < cosine[FERRY] < 0.5
    default_results = (await agent.search(vague_query, strategy="mean", explain=True))["results"]
    assert [(memory["content"], memory["scores"]["dense"]) for memory in default_results] == [(FERRY, 0)], (
        "the default minimum is 0.5"
    )
    at_minimum = (
        await agent.search(vague_query, strategy="mean", min_similarity=cosine[FERRY], explain=True)
    )["results"]
    assert at_minimum[0]["scores"]["dense"] == cosine[FERRY]
    above_similarity = {"strategy": "mean", "min_similarity": cosine[FERRY] + 1e-6, "explain": True}
    assert (await agent.search(vague_query, **above_similarity))["results"][0]["scores"]["dense"] == 0
    rrf_results = (await agent.search(vague_query, strategy="rrf", explain=True))["results"]
    assert rrf_results[0]["scores"]["dense"] > 0


async def test_cx8_a_context_takes_the_minimum_similarity_of_its_request(embedding_gateway: Gateway) -> None:
    agent = agent_of(embedding_gateway)
    ferry = (await agent.search("ferry"))["results"][0]["id"]
    session = await agent.session()

    async def similarity(minimum: float) -> float:
        options: dict[str, Any] = {"min_similarity": minimum, "explain": True, "record_turn": False}
        context = await agent.context(session, "ferry on an unheard of day somewhere", **options)
        return float(context["explain"]["scores"][ferry].get("dense", 0))

    assert await similarity(-1) > 0
    assert await similarity(1) == 0


async def test_a_vector_finds_a_memory_that_shares_no_word_with_the_query(
    embedding_gateway: Gateway, models: ModelServer
) -> None:
    agent = agent_of(embedding_gateway)
    await agent.save("kittens")
    await process_all(embedding_gateway.resources)
    results = (await agent.search("KITTENS!", strategy="mean"))["results"]
    assert [memory["content"] for memory in results] == ["kittens"]
    assert models.embedding_calls[-1].texts == ["KITTENS!"]


@pytest.mark.parametrize(
    "failure", [Status(500), Status(429), Status(401), WrongDimension(), NotANumber(), ZeroVector(), Hang()]
)
async def test_a_query_that_cannot_be_embedded_is_searched_by_keywords_and_reports_it(
    embedding_gateway: Gateway, models: ModelServer, failure: Behaviour
) -> None:
    models.embedding_default = failure
    response = await agent_of(embedding_gateway).search("train")
    assert (response["stages"], response["degraded"]) == (["bm25"], ["dense"])
    assert [memory["content"] for memory in response["results"]] == [TRAIN]
    models.release()


async def test_after_a_failure_the_endpoint_is_not_called_for_a_while(
    embedding_gateway: Gateway, models: ModelServer
) -> None:
    """An endpoint that never replies must not make every search wait for its timeout."""
    models.embedding_default = Hang()
    agent = agent_of(embedding_gateway)
    calls_before = len(models.embedding_calls)
    for _ in range(5):
        assert (await agent.search("train"))["degraded"] == ["dense"]
    assert len(models.embedding_calls) == calls_before + 1
    models.release()


async def test_memories_are_saved_while_the_embedding_model_is_down(
    embedding_gateway: Gateway, models: ModelServer
) -> None:
    models.stop()
    agent = agent_of(embedding_gateway)
    await agent.save("a new train of thought")
    response = await agent.search("thought")
    assert response["degraded"] == ["dense"]
    assert [memory["content"] for memory in response["results"]] == ["a new train of thought"]


async def test_without_the_index_both_index_and_dense_are_reported_as_degraded(
    embedding_gateway: Gateway, unused_url: str
) -> None:
    async with beside(embedding_gateway, qdrant_url=unused_url) as agent:
        response = await agent.search("travelling by train")
    assert (response["stages"], response["degraded"]) == (["postgres"], ["index", "dense"])
    assert response["results"][0]["content"] == TRAIN


async def test_without_the_index_saves_succeed_and_the_same_memory_comes_first(
    agent: Agent, without_index: Agent, gateway: Gateway
) -> None:
    """IX3, IX4: Postgres is searched instead, and points are written later."""
    for content in (TRAIN, FERRY, "Carol likes staying at home", "The train to Prague leaves at nine"):
        await agent.save(content)
    saved_without_index = await without_index.save("Dora collects train tickets")
    for query in ("train", "train to Prague", "who likes the ferry?", "tickets"):
        fallback_response = await without_index.search(query)
        assert fallback_response["degraded"] == ["index"]
        await process_all(gateway.resources)
        index_response = await agent.search(query)
        assert index_response["degraded"] == []
        assert fallback_response["results"][0]["id"] == index_response["results"][0]["id"]
    assert (await agent.search("tickets"))["results"][0]["id"] == saved_without_index["id"]


@pytest.mark.parametrize("strategy", ["blend", "mean", "rrf", "bm25"])
async def test_importance_scales_the_score_between_half_and_all_of_it(agent: Agent, strategy: str) -> None:
    """LT8: the factor is 0.5 + 0.5 · importance."""
    for importance in (0.0, 0.5, 1.0):
        await agent.save(f"marmalade {int(importance * 10):02}", importance=importance)
    results = (await agent.search("marmalade", strategy=strategy, explain=True))["results"]
    boosts = {memory["importance"]: memory["scores"]["importance"] for memory in results}
    assert boosts == {0.0: 0.5, 0.5: 0.75, 1.0: 1.0}
    if strategy != "rrf":  # reciprocal ranks differ even when the keyword scores are equal
        assert [memory["importance"] for memory in results] == [1.0, 0.5, 0.0]


async def test_a_changed_importance_affects_ranking_at_once(agent: Agent) -> None:
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
    """LT12: more other memories match than the index is asked for."""
    memories: list[dict[str, Any]] = [
        {"content": f"deploy deploy deploy step {n}", "importance": 1.0} for n in range(110)
    ]
    await agent.request("POST", "/v1/memories/batch", json={"memories": memories}, status=HTTPStatus.CREATED)
    labels_and_importance = {**labels, "importance": 0.0}
    content = "Don't deploy on a Friday evening because nobody is there to help — instead wait until Monday"
    matching = await agent.save(content, **labels_and_importance)
    unrelated = await agent.save("Don't eat yellow snow — instead drink tea", **labels_and_importance)
    recalled = (await agent.context(await agent.session(), "deploy"))["recalled"]
    assert len(recalled) == 8
    assert recalled[-1]["id"] == matching["id"]
    assert unrelated["id"] not in {memory["id"] for memory in recalled}
    search_results = (await agent.search("deploy", limit=8))["results"]
    assert matching["id"] not in {memory["id"] for memory in search_results}, (
        "a plain search has no place reserved for anti-patterns"
    )
