"""A gateway with a model stand-in, and a night that is worked off in the test's own process."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs.dream_run import Run
from shared.foundation import config
from shared.platform.resources import Resources
from tests.conftest import Gateway, serving
from tests.draining import drain, make_due
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from workers.dream import run_pass

ENTRIES = (
    {"content": "Ada lives in Lyon at 12 Rue Neuve.", "category": "user/home", "tags": ["home"]},
    {"content": "Ada's home is 12 Rue Neuve in Lyon.", "category": "user/home", "tags": ["address"]},
    {"content": "Ada is on the tram right now.", "category": "general"},
    {"content": "The invoice run starts on the 3rd of each month.", "category": "project-context/billing"},
    {"content": "Ada plays the oboe in the Tuesday orchestra.", "category": "user/hobbies"},
)


@pytest.fixture
async def house(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """A gateway whose entries are saved as they are: the model is for dreams only."""
    settings = make_settings(llm_base_url=models.url, llm_model="m", job_backoff=0.01)
    async with serving(settings, tenant) as served:
        yield served


async def saved(house: Gateway, **more: Any) -> list[str]:
    """Save the entries and return their ids."""
    batch = [{**entry, "enrich": False, **more} for entry in ENTRIES]
    answer = await house.client.post("/v1/memories/batch", json={"memories": batch})
    return [entry["id"] for entry in answer.json()["results"]]


def proposing(ids: list[str]) -> Reply:
    """Return a reply that merges the first two and lets the third go as ephemeral."""
    merged = {
        "content": "Ada lives in Lyon; her home is at 12 Rue Neuve.",
        "category": "user/home",
        "tags": ["home"],
        "sourceIds": ids[:2],
    }
    return Reply(json.dumps({"toDelete": [{"id": ids[2], "reason": "ephemeral"}], "toSave": [merged]}))


async def dreamt(house: Gateway, **body: Any) -> dict[str, Any]:
    """Begin a run, work it off, and return it."""
    begun = await house.client.post("/v1/dreams", json=body)
    assert begun.status_code == 201, begun.text
    await night(house.resources, house.tenant, begun.json()["id"])
    return dict((await house.client.get(f"/v1/dreams/{begun.json()['id']}")).json())


async def night(resources: Resources, tenant: str, run_id: str, most: int = 60) -> None:
    """Do one pass after the other until the run has ended."""
    for _ in range(most):
        run = await run_of(resources, tenant, run_id)
        if run.next_pass is None:
            await drain(resources)
            return
        await make_due(resources)
        await run_pass.run_pass(resources, tenant, run_id, run.next_pass.name)
    raise AssertionError("the run does not end")


async def run_of(resources: Resources, tenant: str, run_id: str) -> Run:
    async with resources.postgres.for_tenant(tenant) as connection:
        run = await dream_queries.get(connection, tenant, run_id)
    assert run is not None
    return run


async def live(house: Gateway) -> dict[str, str]:
    """Return the content of every live entry by id."""
    listed = await house.client.get("/v1/memories", params={"limit": 100})
    return {entry["id"]: entry["content"] for entry in listed.json()["results"]}
