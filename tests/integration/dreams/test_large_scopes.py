"""DR2: of a large scope the model is shown what changed and what is near it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from shared.infra.embedder import Vector
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, make_due
from tests.integration.dreams.conftest import execute_run, live, run_dream
from tests.integration.dreams.due_runs import due_at, runs
from tests.integration.dreams.plans import NOTHING, shown_ids
from tests.memory_pages import list_memories
from tests.standins import vectors
from tests.standins.behaviours import Reply, Vectors
from tests.standins.models import ModelServer
from tests.standins.wire import Call, Wire
from workers.dream.due_runs import start_due_runs

MakeSettings = Callable[..., config.Settings]
BATCH = 400


def crates(count: int) -> list[str]:
    return [
        f"Crate {n} holds lamp{n * 7}, rope{n * 11} and tar{n * 13} for shop{n % 40}." for n in range(count)
    ]


@pytest.fixture
def large(
    make_settings: MakeSettings, database: dict[str, str], models: ModelServer, tenant: str
) -> Callable[..., Any]:
    """Return a gateway whose scope has these facts, none of which was reviewed before.

    One with an embedder has an index of its own.
    """

    @asynccontextmanager
    async def make(facts: list[str], **changes: Any) -> AsyncIterator[Gateway]:
        stores = {"apart": True} if "embedding_model" in changes else database
        settings = make_settings(
            **stores, llm_base_url=models.url, llm_model="m", job_backoff=0.01, **changes
        )
        models.chat_default = NOTHING
        async with running_gateway(settings, tenant) as model_gateway:
            for start in range(0, len(facts), BATCH):
                batch = [{"content": fact, "enrich": False} for fact in facts[start : start + BATCH]]
                response = await model_gateway.client.post("/v1/memories/batch", json={"memories": batch})
                assert response.status_code == HTTPStatus.CREATED, response.text
            yield model_gateway

    return make


Large = Callable[..., AbstractAsyncContextManager[Gateway]]


async def consolidate(model_gateway: Gateway) -> dict[str, Any]:
    run = await run_dream(model_gateway, passes=["consolidate"])
    consolidation: dict[str, Any] = run["passes"][0]
    return consolidation


async def save(model_gateway: Gateway, content: str) -> str:
    return str((await Agent(model_gateway.client, model_gateway.tenant).save(content, enrich=False))["id"])


@pytest.mark.parametrize(("size", "limit"), [(150, 100), (1200, 1000)])
async def test_the_model_is_shown_only_changed_memories_and_their_near_duplicates(
    large: Large, models: ModelServer, size: int, limit: int
) -> None:
    async with large(crates(size), dream_batch_size=limit) as model_gateway:
        ids = {content: id_ for id_, content in (await _list_all(model_gateway)).items()}
        assert (await consolidate(model_gateway))["state"] == "done"
        first_batches = [shown_ids(call) for call in models.chat_calls]
        assert set.union(*first_batches) == set(ids.values()), "at first everything is new"
        assert max(map(len, first_batches)) <= limit
        duplicate = await save(model_gateway, "Crate 3 holds lamp21, rope33 and tar39 for the shop3.")
        unrelated = await save(model_gateway, "The harbour master sings bass.")
        edited = ids[crates(size)[90]]
        await model_gateway.client.patch(
            f"/v1/memories/{edited}", json={"content": "Crate 90 was sold to Oslo."}
        )

        assert (await consolidate(model_gateway))["state"] == "done"

        [call] = models.chat_calls[len(first_batches) :]
        assert shown_ids(call) == {duplicate, ids[crates(size)[3]], unrelated, edited}
        skipped = await consolidate(model_gateway)
        assert (skipped["state"], skipped["reason"]) == (
            "skipped",
            "nothing has changed since the last consolidation",
        )
        assert len(models.chat_calls) == len(first_batches) + 1, "without changes the model is not asked"


async def _list_all(model_gateway: Gateway) -> dict[str, str]:
    """Return the content of every live memory by id."""
    return {memory["id"]: memory["content"] for memory in await list_memories(model_gateway.client)}


async def test_planted_near_duplicates_in_a_large_scope_are_merged_and_nothing_else_is_touched(
    large: Large, models: ModelServer
) -> None:
    async with large(crates(300), dream_batch_size=100) as model_gateway:
        await consolidate(model_gateway)
        old = next(
            id_ for id_, content in (await _list_all(model_gateway)).items() if content == crates(300)[7]
        )
        new = await save(model_gateway, "For shop7, crate 7 holds lamp49, rope77 and tar91.")
        merge = {"content": "Crate 7, for shop7, holds lamp49, rope77 and tar91.", "sourceIds": [old, new]}
        models.chat_default = Reply(json.dumps({"toDelete": [], "toSave": [merge]}))

        consolidation = await consolidate(model_gateway)

        assert consolidation["applied"] == {"created": 1, "archived": 2}, consolidation
        assert len(await _list_all(model_gateway)) == 300
        assert set(consolidation["inputs"]) == {old, new}


SLOW, LONG_WAITS, PRAISE = "Kessler takes ages", "Long waits with Kessler", "Kessler is a friendly house"


@dataclass(frozen=True)
class _Meaning(Vectors):
    """Embeddings of a model for which two sentences have the same meaning."""

    def embed(self, call: Call, wire: Wire) -> list[Vector]:
        texts = ["slow" if text in {SLOW, LONG_WAITS} else text for text in call.texts]
        return [vectors.embed(text, wire.dimension) for text in texts]


async def test_with_an_embedder_memories_of_the_same_meaning_are_shown_together(
    large: Large, models: ModelServer
) -> None:
    models.embedding_default = _Meaning()
    embedder = {"embedding_base_url": models.url, "embedding_model": "m"}
    async with large([*crates(60), LONG_WAITS, PRAISE], dream_batch_size=50, **embedder) as model_gateway:
        await consolidate(model_gateway)
        old = next(id_ for id_, content in (await _list_all(model_gateway)).items() if content == LONG_WAITS)
        new = await save(model_gateway, SLOW)
        await make_due(model_gateway.resources)
        await drain(model_gateway.resources)
        call_count = len(models.chat_calls)

        await consolidate(model_gateway)

        assert [shown_ids(call) for call in models.chat_calls[call_count:]] == [{new, old}]


async def test_what_a_run_has_no_time_for_is_reviewed_by_the_next_and_nothing_twice(
    large: Large, models: ModelServer
) -> None:
    """A first run over a large scope needs many calls: the batches that were reviewed are not lost."""
    settings = {"llm_timeout": 100, "dream_lease": 200, "dream_quiet_period": 0}
    only_consolidate = {"dream_disabled_passes": ["deduplicate", "evaluate_sessions"]}
    async with large(crates(12), dream_batch_size=5, **settings, **only_consolidate) as model_gateway:
        for run_count in (1, 2, 3):
            await make_due(model_gateway.resources)
            await start_due_runs(model_gateway.resources)
            [newest, *_] = await runs(model_gateway)
            await execute_run(model_gateway.resources, model_gateway.tenant, newest["id"])
            assert len(models.chat_calls) == run_count
            assert (await due_at(model_gateway) is None) == (run_count == 3), (
                "while something is left, the scope is due again"
            )
        batches = [shown_ids(call) for call in models.chat_calls]
        assert sum(map(len, batches)) == len(set.union(*batches)) == 12
        assert set.union(*batches) == set(await live(model_gateway))


async def test_over_budget_during_a_run_the_paid_batches_are_applied_and_the_rest_stays_due(
    large: Large, models: ModelServer
) -> None:
    loop = asyncio.get_running_loop()
    async with large(crates(12), dream_batch_size=5) as model_gateway:

        def use_up_budget(call: Call) -> str:
            request = model_gateway.client.put(
                "/v1/budgets/tenant", json={"period": "day", "limit_tokens": 1}
            )
            assert asyncio.run_coroutine_threadsafe(request, loop).result(10).is_success
            return json.dumps(
                {"toDelete": [{"id": min(shown_ids(call)), "reason": "ephemeral"}], "toSave": []}
            )

        models.chat_default = Reply(use_up_budget)
        consolidation = await consolidate(model_gateway)

        [call] = models.chat_calls
        assert (consolidation["state"], consolidation["applied"]) == ("done", {"archived": 1})
        assert set(consolidation["inputs"]) == shown_ids(call)
        assert min(shown_ids(call)) not in await live(model_gateway)
        skipped = await consolidate(model_gateway)
        assert skipped["state"] == "skipped"
        assert "budget" in skipped["reason"]
        await model_gateway.client.delete("/v1/budgets/tenant")
        models.chat_default = NOTHING
        await consolidate(model_gateway)
        assert set.union(*map(shown_ids, models.chat_calls[1:])) == {*await live(model_gateway)} - shown_ids(
            call
        )
