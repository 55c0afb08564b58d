"""What an operator uses: health, metrics, the OpenAPI document, and Flower."""

from http import HTTPStatus
from typing import Any

import httpx

from tests.agent import Agent, wait_until
from tests.journey.stack import ProcessStack


async def test_health_and_readiness_need_no_key_and_name_each_database(stack: ProcessStack) -> None:
    async with stack.client() as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        ready = await client.get("/readyz")
        assert (await client.get("/v1/status")).status_code == HTTPStatus.UNAUTHORIZED
    stores = {"postgres": "ok", "redis": "ok", "qdrant": "ok"}
    assert ready.json() == {"status": "ready", "stores": stores}


async def test_every_metric_has_our_prefix_and_none_contains_a_path(
    stack: ProcessStack, agent: Agent
) -> None:
    saved = await agent.save("Something to count.")
    await agent.memory(saved["id"])
    async with stack.client() as client:
        text = (await client.get("/metrics")).text
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    assert names
    assert all(name.startswith("loci_") for name in names)
    assert 'route="/v1/memories/{memory_id}"' in text
    assert saved["id"] not in text
    assert agent.tenant not in text


async def test_the_openapi_document_is_served_with_an_example_for_every_body(stack: ProcessStack) -> None:
    async with stack.client() as client:
        document = (await client.get("/openapi.json")).json()
        assert (await client.get("/docs")).is_success
    body_names = [
        operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        for operations in document["paths"].values()
        for operation in operations.values()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    ]
    assert len(body_names) >= 8
    for name in body_names:
        assert document["components"]["schemas"][name].get("examples"), name


async def test_flower_asks_for_its_password_and_shows_tasks_by_readable_names(
    stack_with_models: ProcessStack, agent_with_model: Agent
) -> None:
    await agent_with_model.save("Hello. The bridge is closed.")
    await agent_with_model.wait_until_idle()
    running = stack_with_models.running
    assert running.flower_password_file is not None
    password = running.flower_password_file.read_text().strip()
    async with httpx.AsyncClient(base_url=running.flower_url, trust_env=False) as client:
        for path in ("/", "/api/tasks", "/api/workers"):
            assert (await client.get(path)).status_code == HTTPStatus.UNAUTHORIZED
        response = await client.get("/api/tasks", auth=(running.flower_user, "wrong"))
        assert response.status_code == HTTPStatus.UNAUTHORIZED

        async def are_tasks_shown() -> bool:
            response = await client.get("/api/tasks", auth=(running.flower_user, password))
            assert response.status_code == HTTPStatus.OK
            tasks: dict[str, dict[str, Any]] = response.json()
            names = {task["name"] for task in tasks.values()}
            return {
                "enrichment.enrich_pending",
                "embedding.embed_pending",
                "sweep.dispatch_due_jobs",
            } <= names

        await wait_until(are_tasks_shown)
