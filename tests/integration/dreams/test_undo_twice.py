"""DR7: two undos of one run, texts that were saved again meanwhile, and what an undo remembers."""

import asyncio

from sqlalchemy import select

from shared.jobs.table import removal as removal_table
from tests.conftest import Gateway
from tests.integration.dreams.conftest import live, merge_reply, run_dream, save_memories
from tests.integration.dreams.plans import merging
from tests.integration.dreams.undone_runs import get, save, undo
from tests.standins.models import ModelServer


async def test_of_two_undos_at_once_one_is_refused(gateway: Gateway) -> None:
    await save(gateway, "Ship it: on Monday!")
    await save(gateway, "Ship it on Monday.")
    run = await run_dream(gateway, passes=["deduplicate"])
    path = f"/v1/dreams/{run['id']}/undo"
    responses = await asyncio.gather(*(gateway.client.post(path) for _ in range(4)))
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409]


async def test_a_run_that_does_not_exist_is_not_found(gateway: Gateway) -> None:
    assert (await gateway.client.post("/v1/dreams/none/undo")).status_code == 404


async def test_what_an_undo_deletes_is_removed_everywhere_before_it_answers(gateway: Gateway) -> None:
    await save(gateway, "Ship it: on Monday!")
    await save(gateway, "Ship it on Monday.")
    undone = await undo(gateway, await run_dream(gateway, passes=["deduplicate"]))
    assert undone["removed"]
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        assert list(await tx.execute(select(removal_table))) == []


async def test_what_somebody_has_saved_again_is_not_restored_beside_it(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    content = (await live(model_gateway))[ids[2]]
    models.chat_default = merge_reply(ids)
    run = await run_dream(model_gateway, passes=["consolidate"])
    duplicate = await save(model_gateway, content)
    assert duplicate != ids[2]

    undone = await undo(model_gateway, run)

    assert sorted(undone["restored"]) == sorted(ids[:2])
    assert undone["kept"] == [{"entry_id": ids[2], "reason": f"memory '{duplicate}' says this already"}]


async def test_an_undone_merge_into_a_third_memory_is_not_done_with_it_again(
    model_gateway: Gateway, models: ModelServer
) -> None:
    text = "Ada lives in Lyon; her home is at 12 Rue Neuve."
    third = await save(model_gateway, text)
    first = await save(model_gateway, "Ada lives in Lyon at 12 Rue Neuve.")
    second = await save(model_gateway, "Ada's home is 12 Rue Neuve in Lyon.")
    models.chat_default = merging((text, [first, second]))
    await undo(model_gateway, await run_dream(model_gateway, passes=["consolidate"]))
    before = await live(model_gateway)
    models.chat_default = merging(("In Lyon, at 12 Rue Neuve, Ada lives; that is her home.", [first, third]))

    second_run = await run_dream(model_gateway, passes=["consolidate"])

    assert [rejection["code"] for rejection in second_run["passes"][0]["rejections"]] == ["undone_before"]
    assert await live(model_gateway) == before
    assert (await get(model_gateway, third))["state"] == "final"
