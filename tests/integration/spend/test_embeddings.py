"""SD2, SD3: calls for embeddings are charged to those whose texts they have, and not made over budget."""

import pytest

from tests.conftest import Gateway
from tests.draining import drain, make_due
from tests.integration.spend.conftest import SCOPE, json_of, report, save, set_budget
from tests.standins.behaviours import Drop, Status, Vectors, WrongCount
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour


async def test_sd2_the_cost_of_one_embedding_call_is_split_between_its_payers(
    gateway_with_embedder: Gateway, models: ModelServer
) -> None:
    """The payers are of two tenants and two users; the shares are proportional to their texts."""
    texts = {"ada": "lorem " * 100, "bob": "ipsum " * 300}
    for user, text in texts.items():
        await save(gateway_with_embedder, text, user_id=user)
    async with await gateway_with_embedder.new_client(f"{gateway_with_embedder.tenant}-2") as other:
        body = {"content": "dolor " * 200, **SCOPE}
        await json_of(other.post("/v1/memories", json=body), 201)
        await drain(gateway_with_embedder.resources)
        tokens = {
            row["user_id"]: row["input_tokens"]
            for row in await report(gateway_with_embedder, "user", "purpose")
        }
        other_tokens = (await json_of(other.get("/v1/spend")))["results"][0]["input_tokens"]

    sent = [text for call in models.embedding_calls for text in call.texts]
    assert tokens["ada"] + tokens["bob"] + other_tokens == sum(len(text.split()) for text in sent)
    assert len(models.embedding_calls) == 1
    assert tokens["bob"] / tokens["ada"] == pytest.approx(3, rel=0.1)
    assert other_tokens / tokens["ada"] == pytest.approx(2, rel=0.1)


async def test_sd3_over_budget_an_embedding_is_delayed_until_the_next_window_with_the_reason(
    gateway_with_embedder: Gateway, models: ModelServer
) -> None:
    await set_budget(gateway_with_embedder, limit_tokens=3)
    memory = await save(gateway_with_embedder)
    async with await gateway_with_embedder.new_client(f"{gateway_with_embedder.tenant}-2") as other:
        await json_of(other.post("/v1/memories", json={"content": "a fact of another tenant"}), 201)
        await drain(gateway_with_embedder.resources)
        assert (await json_of(other.get("/v1/status")))["pending"]["embedding"] == 0

    status = await json_of(gateway_with_embedder.client.get("/v1/status"))
    assert status["pending"]["embedding"] == 1
    assert status["delayed"][0]["stage"] == "embedding"
    assert status["delayed"][0]["reason"].startswith("over budget 'tenant' per day")
    assert [text for call in models.embedding_calls for text in call.texts] == ["a fact of another tenant"]
    page = await json_of(
        gateway_with_embedder.client.post("/v1/memories/search", json={"query": "Lyon", **SCOPE})
    )
    assert [result["id"] for result in page["results"]] == [memory["id"]]

    # When the budget is raised, the job does not wait for the next window.
    await set_budget(gateway_with_embedder, limit_tokens=10_000)
    await drain(gateway_with_embedder.resources)
    status = await json_of(gateway_with_embedder.client.get("/v1/status"))
    assert (status["pending"]["embedding"], status["delayed"]) == (0, [])


async def test_sd3_records_of_a_batch_whose_agent_has_budget_get_their_vectors(
    gateway_with_embedder: Gateway,
) -> None:
    await set_budget(gateway_with_embedder, "agent/support", limit_tokens=3)
    await save(gateway_with_embedder, "waits for its vector")
    await save(gateway_with_embedder, "has its vector", agent_id="another")
    await drain(gateway_with_embedder.resources)
    assert (await json_of(gateway_with_embedder.client.get("/v1/status")))["pending"]["embedding"] == 1
    assert [row["agent_id"] for row in await report(gateway_with_embedder, "agent")] == ["another"]


@pytest.mark.parametrize(("failure", "estimated"), [(Status(503), 0), (WrongCount(), 0), (Drop(), 1)])
async def test_sd3_a_failed_embedding_call_is_booked_as_far_as_it_is_known(
    gateway_with_embedder: Gateway, models: ModelServer, failure: Behaviour, estimated: int
) -> None:
    models.embedding_replies.append(failure)
    await save(gateway_with_embedder)
    await drain(gateway_with_embedder.resources)
    models.embedding_default = Vectors()
    await make_due(gateway_with_embedder.resources)
    await drain(gateway_with_embedder.resources)
    assert (await json_of(gateway_with_embedder.client.get("/v1/status")))["pending"]["embedding"] == 0
    [row] = await report(gateway_with_embedder)
    has_usage = isinstance(failure, WrongCount)  # it replied, and reported its usage
    assert (row["charges"], row["estimated"]) == (1 + estimated + has_usage, estimated)
