"""A worker that is killed at any point leaves the old state or the new one."""

import asyncio
from collections.abc import Iterator

import pytest

from shared.foundation.stages import DreamPass
from tests import run_pass
from tests.conftest import Gateway
from tests.draining import make_due
from tests.integration.dreams.conftest import execute_run, load_run, merge_reply, save_memories
from tests.integration.dreams.kill_cases import CASES, KillCase
from tests.killing import Kill, killing_process
from tests.long_form import in_long_form
from tests.standins.models import ModelServer


@pytest.fixture(scope="module")
def killed_worker() -> Iterator[Kill]:
    with killing_process("tests.integration.dreams.killed_worker") as run:
        yield run


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("offset", in_long_form([1, 3], otherwise=[1]))
async def test_a_kill_at_any_point_leaves_the_old_or_the_new_state_and_the_run_continues(
    model_gateway: Gateway, models: ModelServer, killed_worker: Kill, offset: int, case: KillCase
) -> None:
    resources, client = model_gateway.resources, model_gateway.client
    states: list[str] = []
    point, code = offset, -9
    while code == -9:
        run = await case.start(model_gateway, models, f"user-{point}")
        before = await run.read_state()

        order = {"tenant": model_gateway.tenant, "run": run.id, "passes": list(case.passes)}
        code = await asyncio.to_thread(killed_worker, resources.settings, point, **order)
        between = await run.read_state()
        await make_due(resources)
        await execute_run(resources, model_gateway.tenant, run.id)

        after = await run.read_state()
        assert between in (before, after), "neither the old state nor the new one"
        run.check(after)
        diff = (await client.get(f"/v1/dreams/{run.id}/diff")).json()["results"]
        assert sorted(change["action"] for change in diff) == list(case.actions)
        ended_run = (await client.get(f"/v1/dreams/{run.id}")).json()
        assert [pass_["state"] for pass_ in ended_run["passes"]] == list(case.states)
        states.append("old" if between == before else "new")
        point += case.stride
    assert code == 0
    assert states == sorted(states, reverse=True), "the new state stays"
    assert states.count("old") > 3
    assert states[-1] == "new"


async def test_a_pass_is_never_run_twice_at_once(model_gateway: Gateway, models: ModelServer) -> None:
    """Of several workers that got the task of one pass, one claims the job and the others end."""
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)
    response = await model_gateway.client.post("/v1/dreams", json={"passes": ["consolidate"]})
    run_id = response.json()["id"]

    results = await asyncio.gather(
        *(
            run_pass.run_pass(model_gateway.resources, model_gateway.tenant, run_id, DreamPass.CONSOLIDATE)
            for _ in range(8)
        )
    )

    assert sorted(results) == sorted(["done"] + ["not due"] * 7)
    run = await load_run(model_gateway.resources, model_gateway.tenant, run_id)
    assert run.passes[0].applied == {"created": 1, "archived": 3}
