"""Say what is configured, what answers, which model is in use, and what is behind."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from rich.console import Console
from rich.table import Table

from migrations.earlier_versions import refuse_earlier_schema
from services.commands.resources import with_resources
from shared.foundation import errors
from shared.infra import redis as redis_client
from shared.jobs import status
from shared.platform.resources import Resources
from shared.search.index import generations

_LIMIT = 10.0


def run_checks() -> int:
    """Print the findings; return 0 if everything configured answers, else 1."""
    return with_resources(_examine)


async def _examine(resources: Resources) -> int:
    checks = {
        "postgres": _postgres(resources),
        "redis": _redis(resources),
        "qdrant": _qdrant(resources),
        "language model": _language_model(resources),
        "embeddings": _embeddings(resources),
    }
    found = dict(zip(checks, await asyncio.gather(*map(_told, checks.values())), strict=True))
    _print(found)
    if found["postgres"][0]:
        await _print_index(resources)
    return 0 if all(well for well, _ in found.values()) else 1


async def _told(check: Awaitable[Any]) -> tuple[bool, str]:
    try:
        async with asyncio.timeout(_LIMIT):
            return True, str(await check or "answers")
    except (errors.LociError, TimeoutError) as error:
        return False, str(error) or "no answer in time"


async def _postgres(resources: Resources) -> str:
    async with resources.postgres.autocommit() as connection:
        await connection.run_sync(refuse_earlier_schema)
    return "answers"


async def _redis(resources: Resources) -> str:
    with redis_client.failures_as_unavailable():
        info = await resources.redis.info("server")
        policy = await resources.redis.config_get("appendonly")
    kept = (
        "append-only file"
        if policy.get("appendonly") == "yes"
        else "NO append-only file: desks are lost with it"
    )
    return f"answers, version {info.get('valkey_version') or info.get('redis_version')}, {kept}"


async def _qdrant(resources: Resources) -> str:
    return f"answers, version {await resources.qdrant.version()}"


async def _language_model(resources: Resources) -> str:
    if resources.language_model is None:
        return "not configured: entries stay as they are written"
    await resources.language_model.complete("Answer with the word ok.", "ok?")
    return f"answers, model {resources.language_model.model}"


async def _embeddings(resources: Resources) -> str:
    if resources.embedder is None:
        return "not configured: search is by keyword"
    vectors = await resources.embedder.embed(["doctor"])
    return f"answers, model {resources.embedder.model}, {len(vectors[0])} dimensions"


def _print(found: dict[str, tuple[bool, str]]) -> None:
    table = Table("part", "state", "details")
    for name, (well, details) in found.items():
        table.add_row(name, "[green]ok[/]" if well else "[red]trouble[/]", details)
    Console().print(table)


async def _print_index(resources: Resources) -> None:
    async with resources.postgres.across_tenants() as connection:
        known = await generations.list_generations(connection)
    table = Table("collection", "state", "model", "dimension")
    for generation in known:
        model, dimension = generation.model or "keywords only", str(generation.dimension or "")
        table.add_row(generation.collection, generation.state, model, dimension)
    behind = await status.fleet_status(resources.postgres)
    console = Console()
    console.print(table)
    console.print(f"left to do: {behind['pending']}, given up: {behind['dead']}")
