"""A gateway whose models have round prices: `m` 1, 2 and 0.5 USD per million, `e` 0.1."""

import re
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from shared.foundation import config
from tests.conftest import Gateway, serving
from tests.standins.models import ModelServer

PRICES = """
[models.m]
input = 1
output = 2
cached = 0.5

[models.e]
input = 0.1
"""
M = {"input": Decimal(1), "output": Decimal(2), "cached": Decimal("0.5")}


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    file = tmp_path / "prices.toml"
    file.write_text(PRICES)
    return file


@pytest.fixture
async def bookkeeper(
    make_settings: Callable[..., config.Settings], prices: Path, tenant: str
) -> AsyncIterator[Gateway]:
    """A gateway without models, for what agents report."""
    async with serving(make_settings(prices_file=prices), tenant) as served:
        yield served


@pytest.fixture
async def thinker(
    make_settings: Callable[..., config.Settings], prices: Path, models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """A gateway with a language model, no embeddings."""
    settings = make_settings(
        apart=True,
        prices_file=prices,
        llm_base_url=models.url,
        llm_model="m",
        llm_max_tokens=100,
        job_backoff=0.01,
    )
    async with serving(settings, tenant) as served:
        yield served


@pytest.fixture
async def embedding(
    make_settings: Callable[..., config.Settings], prices: Path, models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """A gateway with embeddings, no language model; its generations are its own."""
    settings = make_settings(
        apart=True,
        prices_file=prices,
        embedding_base_url=models.url,
        embedding_model="e",
        embedding_dimension=64,
        job_backoff=0.01,
    )
    async with serving(settings, tenant) as served:
        yield served


def money(answer: httpx.Response, field: str) -> Decimal:
    """Return an amount of an answer with the digits that were sent: JSON's own reader would round them."""
    found = re.search(rf'"{field}":([0-9.]+)', answer.text)
    assert found is not None, answer.text
    return Decimal(found[1])


async def told(call: Any, status: int = 200) -> dict[str, Any]:
    """Return the JSON of an answer, which has this status."""
    answer: httpx.Response = await call
    assert answer.status_code == status, answer.text
    whole: dict[str, Any] = orjson.loads(answer.content)
    return whole


async def report(house: Gateway, *groups: str, **asked: str) -> list[dict[str, Any]]:
    """Return the report by these groups."""
    params = {"group_by": ",".join(groups), **asked}
    answer = await told(house.client.get("/v1/spend", params=params))
    rows: list[dict[str, Any]] = answer["results"]
    return rows


async def metric(house: Gateway, name: str, *labels: str) -> float:
    """Return the sum of a metric's samples that have all of these labels."""
    lines = (await house.client.get("/metrics")).text.splitlines()
    mine = [line for line in lines if line.startswith(name) and all(label in line for label in labels)]
    return sum(float(line.rpartition(" ")[2]) for line in mine)
