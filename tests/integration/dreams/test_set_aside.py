"""DR1, DR4: what a model gives no usable reply about is set aside, and everything else is consolidated."""

from collections.abc import Callable
from typing import Any

from shared.foundation import config
from tests.conftest import Gateway, running_gateway
from tests.integration.dreams.conftest import execute_run, merge_reply, run_dream, save_memories
from tests.integration.dreams.plans import NOTHING, shown_ids
from tests.standins.behaviours import Refusal, Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call


async def consolidate(gateway: Gateway) -> dict[str, Any]:
    return dict((await run_dream(gateway, passes=["consolidate"]))["passes"][0])


async def _save(gateway: Gateway, content: str) -> str:
    body = {"content": content, "enrich": False}
    return str((await gateway.client.post("/v1/memories", json=body)).json()["id"])


def poisoned(call: Call) -> str:
    """Refuse to reply about the poisoned memory; find nothing to do elsewhere."""
    return "Never." if "POISON" in call.prompt else str(NOTHING.text)


async def test_a_poisoned_memory_is_isolated_and_does_not_keep_the_others_from_being_reviewed(
    model_gateway: Gateway, models: ModelServer
) -> None:
    # Eight in all: their halves are equal, so which half holds the poisoned one (ids are random) is the same.
    contents = [f"Crate {n} holds lamp{n * 7}." for n in range(7)]
    for content in [*contents[:4], "POISON", *contents[4:]]:
        await _save(model_gateway, content)
    models.chat_default = Reply(poisoned)

    runs = [await consolidate(model_gateway) for _ in range(4)]
    calls = len(models.chat_calls)
    quiet = await consolidate(model_gateway)
    new = await _save(model_gateway, "The harbour master sings bass.")
    after_new = await consolidate(model_gateway)

    assert runs[0]["state"] == "failed", "the whole scope is one batch at first"
    assert [run["state"] for run in runs[1:]] == ["done", "done", "done"], "halves of 4, 2 and 1"
    assert any(rejection["code"] == "unusable_reply" for rejection in runs[1]["rejections"])
    assert (quiet["state"], quiet["reason"]) == (
        "skipped",
        "nothing has changed since the last consolidation",
    )
    assert (after_new["state"], len(models.chat_calls)) == ("done", calls + 1)
    assert new in shown_ids(models.chat_calls[-1])
    assert "POISON" not in models.chat_calls[-1].prompt
    assert len(shown_ids(models.chat_calls[-1])) == 8, "the poisoned memory alone is set aside"


async def test_of_many_batches_a_poisoned_one_is_set_aside_in_the_same_run(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> None:
    settings = make_settings(llm_base_url=models.url, llm_model="m", dream_batch_size=4, job_backoff=0.01)
    models.chat_default = Reply(poisoned)
    async with running_gateway(settings, tenant) as gateway:
        await _save(gateway, "POISON")
        for number in range(8):
            await _save(gateway, f"Crate {number} holds lamp{number * 7}.")

        consolidation = await consolidate(gateway)

        assert consolidation["state"] == "done"
        assert len(consolidation["inputs"]) >= 5
        assert len(models.chat_calls) == 3
        [rejection] = consolidation["rejections"]
        assert (rejection["code"], rejection["kind"]) == ("unusable_reply", "batch")


async def test_a_prompt_keeps_to_its_number_of_tokens_and_what_does_not_fit_has_its_turn(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> None:
    settings = make_settings(llm_base_url=models.url, llm_model="m", dream_prompt_tokens=9000)
    models.chat_default = NOTHING
    async with running_gateway(settings, tenant) as gateway:
        ids = {await _save(gateway, f"Crate {n} holds {'lamps and ropes, ' * 60}{n}.") for n in range(40)}
        await consolidate(gateway)

        assert set.union(*map(shown_ids, models.chat_calls)) == ids
        assert len(models.chat_calls) > 2
        for call in models.chat_calls:
            assert sum(len(message["content"]) for message in call.body["messages"]) < 3 * 9000


async def test_the_tokens_and_the_cost_of_a_pass_are_those_of_all_its_attempts(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    price = {"input": 1, "output": 2, "cached": 1}
    assert (await model_gateway.client.put("/v1/prices/m", json=price)).is_success
    models.chat_replies.extend([Reply("I would rather not."), Refusal(), merge_reply(ids)])
    models.chat_default = merge_reply(ids)
    run = (await model_gateway.client.post("/v1/dreams", json={"passes": ["consolidate"]})).json()
    await execute_run(model_gateway.resources, model_gateway.tenant, run["id"])

    ended = (await model_gateway.client.get(f"/v1/dreams/{run['id']}")).json()["passes"][0]
    spend = (await model_gateway.client.get("/v1/spend", params={"group_by": "purpose"})).json()
    [row] = [row for row in spend["results"] if row["purpose"] == "consolidate"]
    assert len(models.chat_calls) == 2
    assert ended["input_tokens"] == row["input_tokens"] > len(models.chat_calls[0].prompt.split())
    assert ended["output_tokens"] == row["output_tokens"]
    assert ended["cost_usd"] == row["cost_usd"]
