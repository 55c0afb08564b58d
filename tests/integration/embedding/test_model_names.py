"""IX4, MO2: an endpoint's only model needs no name, and a wrong name is shown instead of silence."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from services.local import model_check
from services.local.stack import Stack
from shared.foundation import config
from shared.foundation.stages import SEARCHABLE_KINDS, ReasonCode
from shared.infra.embedder import open_embedder
from shared.infra.language_model import open_language_model
from shared.lifecycle.reindex import rebuild
from shared.platform.resources import open_resources
from tests.conftest import running_gateway
from tests.integration.sweep.stack import TestStack
from tests.standins.behaviours import Status
from tests.standins.embedding_endpoint import EmbeddingEndpoint
from tests.standins.models import ModelServer

TEXT = "The heron nests by the old weir."
MODEL = "all-MiniLM-L6-v2"


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    """An endpoint with one model, which is not started yet."""
    endpoint = EmbeddingEndpoint(MODEL)
    yield endpoint
    endpoint.stop()


@pytest.fixture
def settings(make_settings: Callable[..., config.Settings], endpoint: EmbeddingEndpoint) -> config.Settings:
    """Settings with the address of the endpoint alone."""
    return make_settings(apart=True, embedding_base_url=endpoint.url)


async def _make_probe_due(stack: TestStack) -> None:
    async with stack.resources.postgres.across_tenants() as tx:
        await tx.execute(text("UPDATE model_pause SET next_probe_at = now()"))


async def _search(stack: TestStack) -> dict[str, Any]:
    found = (await stack.client.post("/v1/memories/search", json={"query": TEXT})).json()
    return {name: found[name] for name in ("stages", "degraded")}


async def _status(stack: TestStack) -> dict[str, Any]:
    return dict((await stack.client.get("/v1/status")).json())


WITH_VECTORS = {"stages": ["bm25", "dense"], "degraded": []}
BY_KEYWORD = {"stages": ["bm25"], "degraded": ["dense"]}


async def test_the_address_of_an_endpoint_with_one_model_is_enough(
    settings: config.Settings, endpoint: EmbeddingEndpoint, tenant: str
) -> None:
    endpoint.start()
    async with running_gateway(settings, tenant) as gateway:
        stack = TestStack(gateway)
        await stack.save(TEXT, enrich=False)
        assert (await _status(stack))["pending"]["embedding"] + (await _status(stack))["pending"][
            "index"
        ] == 1
        await stack.process_all()
        assert await _search(stack) == WITH_VECTORS
        assert (await stack.live_generation()).model == MODEL
        assert (await _status(stack))["pending"]["embedding"] == 0


async def test_what_waits_for_an_endpoint_that_is_not_started_yet_is_pending_and_embedded_later(
    settings: config.Settings, endpoint: EmbeddingEndpoint, tenant: str
) -> None:
    async with running_gateway(settings, tenant) as gateway:
        stack = TestStack(gateway)
        await stack.save(TEXT, enrich=False)
        await stack.process_all()
        status = await _status(stack)
        assert (status["pending"]["embedding"], status["paused"]) == (1, [])
        endpoint.start()
        async with open_resources(settings) as other_process:
            await rebuild.prepare_index(other_process)
            assert other_process.embedder is not None
            assert await other_process.embedder.name() == MODEL
        assert (await stack.sweep()).generations_begun == 0, "another process began them under the same name"
        await stack.process_all()
        assert [(g.state, g.model) for g in await stack.generations()] == [
            ("retiring", None),
            ("live", MODEL),
        ]
        gateway.resources.search_index._live.clear()  # instead of waiting until it is read again
        stack.resources.search_index.embedder._breaker._open_until = 0  # type: ignore[union-attr]
        assert await _search(stack) == WITH_VECTORS
        assert (await _status(stack))["pending"]["embedding"] == 0


async def test_a_wrong_name_is_a_pause_until_the_endpoint_has_the_model(
    settings: config.Settings, endpoint: EmbeddingEndpoint, tenant: str
) -> None:
    endpoint.start()
    wrong = settings.model_copy(update={"embedding_model": "another"})
    async with running_gateway(wrong, tenant) as gateway:
        stack = TestStack(gateway)
        await stack.save(TEXT, enrich=False)
        await stack.process_all()
        status = await _status(stack)
        assert [(pause["stage"], pause["reason_code"]) for pause in status["paused"]] == [
            ("embedding", ReasonCode.MODEL_UNKNOWN)
        ]
        assert status["pending"]["embedding"] == 1
        assert await _search(stack) == BY_KEYWORD
        endpoint.stop()
        endpoint.model = "another"
        endpoint.start()
        assert (await stack.sweep()).generations_begun == 0, "others may have just asked"
        await _make_probe_due(stack)
        assert (await stack.sweep()).generations_begun == len(SEARCHABLE_KINDS)
        assert (await _status(stack))["paused"] == []
        await stack.process_all()
        assert (await _status(stack))["pending"]["embedding"] == 0


async def test_a_query_that_is_refused_pauses_and_the_sweep_ends_the_pause_when_the_model_is_back(
    settings: config.Settings, endpoint: EmbeddingEndpoint, tenant: str
) -> None:
    endpoint.start()
    async with running_gateway(settings, tenant) as gateway:
        stack = TestStack(gateway)
        await stack.save(TEXT, enrich=False)
        await stack.process_all()
        endpoint.stop()
        endpoint.model = "another"
        endpoint.start()
        assert await _search(stack) == BY_KEYWORD
        assert [pause["stage"] for pause in (await _status(stack))["paused"]] == ["embedding"]
        await _make_probe_due(stack)
        await stack.sweep()
        assert [pause["stage"] for pause in (await _status(stack))["paused"]] == ["embedding"]
        endpoint.stop()
        endpoint.model = MODEL
        endpoint.start()
        await _make_probe_due(stack)
        await stack.sweep()
        assert (await _status(stack))["paused"] == []


async def test_a_refused_query_pauses_nothing_if_it_may_be_about_the_query_and_moves_no_probe(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> None:
    async with running_gateway(make_settings(apart=True, embedding_base_url=models.url), tenant) as gateway:
        stack = TestStack(gateway)
        embedder = stack.resources.embedder
        assert embedder is not None
        models.embedding_default = Status(403)
        assert await _search(stack) == BY_KEYWORD
        assert (await _status(stack))["paused"] == []
        models.embedding_default = Status(401)
        probes = []
        for _ in range(2):
            embedder._breaker._open_until = 0
            assert await _search(stack) == BY_KEYWORD
            probes.append(await _next_probe(stack))
        assert probes[0] == probes[1], "or its jobs would wait as long as somebody searches"


async def _next_probe(stack: TestStack) -> object:
    async with stack.resources.postgres.across_tenants() as tx:
        return await tx.scalar(text("SELECT next_probe_at FROM model_pause"))


@pytest.mark.parametrize("status", [401, 503])
def test_a_stack_starts_beside_an_endpoint_that_does_not_say_that_it_lacks_the_model(
    make_settings: Callable[..., config.Settings], models: ModelServer, status: int
) -> None:
    models.embedding_default = Status(status)
    model_check.refuse_unknown_model(make_settings(embedding_base_url=models.url))
    models.stop()
    model_check.refuse_unknown_model(make_settings(embedding_base_url=models.url))


async def test_the_only_model_of_a_chat_endpoint_is_asked_by_its_name(
    make_settings: Callable[..., config.Settings], models: ModelServer
) -> None:
    model = open_language_model(make_settings(llm_base_url=models.url))
    assert model is not None
    await model.complete("system", "user")
    await model.close()
    assert [call.model for call in models.chat_calls] == ["stand-in"]


async def test_a_name_that_is_set_is_asked_for_whatever_the_endpoint_lists(
    settings: config.Settings, endpoint: EmbeddingEndpoint
) -> None:
    endpoint.start()
    embedder = open_embedder(settings.model_copy(update={"embedding_model": f"organisation/{MODEL}"}))
    assert embedder is not None
    assert await embedder.check() == 64
    assert await embedder.name() == f"organisation/{MODEL}"
    await embedder.close()


def test_a_wrong_name_is_an_error_at_the_start_of_a_stack(
    settings: config.Settings, endpoint: EmbeddingEndpoint
) -> None:
    endpoint.start()
    lines: list[str] = []
    wrong = settings.model_copy(update={"embedding_model": "another"})
    assert Stack(wrong, say=lines.append).run() == 1
    assert lines == [
        f"Loci did not start: LOCI_EMBEDDING_MODEL: the endpoint has no model 'another'; it lists {MODEL}"
    ]
    assert not (wrong.data_dir / "addresses.json").exists()
