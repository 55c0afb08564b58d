"""Gateways whose models have round prices: `m` 1, 2 and 0.5 USD per million tokens, `e` 0.1."""

import re
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from shared.foundation import config, errors
from shared.platform.spend import reserve
from shared.platform.spend.charge import Payer
from shared.platform.spend.reserve import CallRequest, Reservation
from shared.platform.spend.usage import Usage
from tests.conftest import Gateway, running_gateway
from tests.standins.models import ModelServer

PRICES = """
[models.m]
input = 1
output = 2
cached = 0.5

[models.e]
input = 0.1
"""
TENANT = "/v1/budgets/tenant"
SCOPE = {"agent_id": "support", "user_id": "ada"}
BOUND = Usage(600_000, 200_000)  # 1 USD at the prices of `m`
M = {"input": Decimal(1), "output": Decimal(2), "cached": Decimal("0.5")}


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    file = tmp_path / "prices.toml"
    file.write_text(PRICES)
    return file


@pytest.fixture
async def priced_gateway(
    make_settings: Callable[..., config.Settings], prices: Path, tenant: str
) -> AsyncIterator[Gateway]:
    """Start a gateway without models, for usage that agents report."""
    async with running_gateway(make_settings(prices_file=prices), tenant) as gateway:
        yield gateway


@pytest.fixture
async def gateway_with_model(
    make_settings: Callable[..., config.Settings],
    database: dict[str, str],
    prices: Path,
    models: ModelServer,
    tenant: str,
) -> AsyncIterator[Gateway]:
    """Start a gateway with a language model and without embeddings."""
    settings = make_settings(
        **database,
        prices_file=prices,
        llm_base_url=models.url,
        llm_model="m",
        llm_max_tokens=100,
        job_backoff=0.01,
    )
    async with running_gateway(settings, tenant, has_trusted_judge=False) as gateway:
        yield gateway


@pytest.fixture
async def gateway_with_embedder(
    make_settings: Callable[..., config.Settings],
    database: dict[str, str],
    prices: Path,
    models: ModelServer,
    tenant: str,
) -> AsyncIterator[Gateway]:
    """Start a gateway with embeddings and without a language model.

    No other gateway of its module may use the index without embeddings.
    """
    settings = make_settings(
        **database,
        prices_file=prices,
        embedding_base_url=models.url,
        embedding_model="e",
        embedding_dimension=64,
        job_backoff=0.01,
    )
    async with running_gateway(settings, tenant, has_trusted_judge=False) as gateway:
        yield gateway


def money(response: httpx.Response, field: str) -> Decimal:
    """Return an amount of a response with all digits that were sent, which a JSON parser would round."""
    match = re.search(rf'"{field}":([0-9.]+)', response.text)
    assert match is not None, response.text
    return Decimal(match[1])


async def json_of(call: Any, status: int = 200) -> dict[str, Any]:
    """Return the JSON of a response, which must have this status."""
    response: httpx.Response = await call
    assert response.status_code == status, response.text
    body: dict[str, Any] = orjson.loads(response.content)
    return body


async def save(gateway: Gateway, content: str = "Ada said she lives in Lyon", **more: Any) -> dict[str, Any]:
    return await json_of(gateway.client.post("/v1/memories", json={"content": content, **SCOPE, **more}), 201)


async def report(gateway: Gateway, *groups: str, **filters: str) -> list[dict[str, Any]]:
    """Return the spend report by these groups."""
    params = {"group_by": ",".join(groups), **filters}
    response = await json_of(gateway.client.get("/v1/spend", params=params))
    rows: list[dict[str, Any]] = response["results"]
    return rows


async def metric(gateway: Gateway, name: str, *labels: str) -> float:
    """Return the sum of a metric's samples that have all of these labels."""
    lines = (await gateway.client.get("/metrics")).text.splitlines()
    samples = [line for line in lines if line.startswith(name) and all(label in line for label in labels)]
    return sum(float(line.rpartition(" ")[2]) for line in samples)


def call_request(
    gateway: Gateway, agent: str = "support", purpose: str = "enrichment", model: str = "m"
) -> CallRequest:
    return CallRequest(Payer(gateway.tenant, agent, None, purpose), model, BOUND)


async def reserve_all(gateway: Gateway, *requests: CallRequest) -> list[Reservation | errors.OverBudget]:
    return await reserve.reserve(gateway.resources, gateway.tenant, requests)


async def reserve_call(gateway: Gateway, request: CallRequest) -> Reservation:
    [reservation] = await reserve_all(gateway, request)
    assert isinstance(reservation, Reservation), reservation
    return reservation


async def refuse_call(gateway: Gateway, request: CallRequest) -> str:
    [outcome] = await reserve_all(gateway, request)
    assert isinstance(outcome, errors.OverBudget)
    return str(outcome)


async def set_budget(gateway: Gateway, scope: str = "tenant", **limits: Any) -> dict[str, Any]:
    body = {"period": "day", **limits}
    return await json_of(gateway.client.put(f"/v1/budgets/{scope}", json=body))
