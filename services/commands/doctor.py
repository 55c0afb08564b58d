"""Check what is configured, what answers, which models are in use, and how many jobs are pending."""

import asyncio
import os
from collections.abc import Awaitable
from typing import Any

from rich.console import Console
from rich.table import Table

from migrations.earlier_versions import refuse_earlier_schema
from services.commands import doctor_judge
from services.commands.resources import with_resources
from shared.foundation import errors, unknown_settings
from shared.infra import redis as redis_client
from shared.jobs import status
from shared.platform.resources import Resources
from shared.platform.spend import price_lists
from shared.search.index import generations
from shared.verification.judge_report import read_judge_report

_TIMEOUT_SECONDS = 10.0


def run_checks() -> int:
    """Print the results. Return the exit code: 0 if everything configured answers, otherwise 1."""
    return with_resources(_run_checks)


async def _run_checks(resources: Resources) -> int:
    checks = {
        "postgres": _check_postgres(resources),
        "redis": _check_redis(resources),
        "qdrant": _check_qdrant(resources),
        "language model": _check_language_model(resources),
        "judge": _check_judge(resources),
        "embeddings": _check_embeddings(resources),
        "files": _check_files(resources),
    }
    outcomes = await asyncio.gather(*map(_run_check, checks.values()))
    outcome_by_part = dict(zip(checks, outcomes, strict=True))
    _print_outcomes(outcome_by_part)
    for model in price_lists.models_without_price(resources.settings, _configured_models(resources)):
        Console().print(
            f"model {model} has no price, so what it costs is unknown: "
            f"name it in LOCI_PRICES_FILE, or per tenant with PUT /v1/prices/{model}"
        )
    for variable, nearest in unknown_settings.unknown_variables(os.environ).items():
        Console().print(unknown_settings.describe(variable, nearest))
    if outcome_by_part["postgres"][0]:
        await _print_index(resources)
        doctor_judge.print_report(await read_judge_report(resources))
    return 0 if all(is_ok for is_ok, _ in outcomes) else 1


def _configured_models(resources: Resources) -> list[str]:
    settings = resources.settings
    models = (settings.llm_model, settings.judge_model, settings.embedding_model)
    return [model for model in dict.fromkeys(models) if model is not None]


async def _run_check(check: Awaitable[Any]) -> tuple[bool, str]:
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            return True, str(await check or "answers")
    except (errors.LociError, TimeoutError) as error:
        return False, str(error) or "no answer in time"


async def _check_postgres(resources: Resources) -> str:
    async with resources.postgres.autocommit() as tx:
        await tx.run_sync(refuse_earlier_schema)
    return "answers"


async def _check_redis(resources: Resources) -> str:
    with redis_client.failures_as_unavailable():
        info = await resources.redis.info("server")
        policy = await resources.redis.config_get("appendonly")
    durability = (
        "append-only file"
        if policy.get("appendonly") == "yes"
        else "NO append-only file: a restart loses working memory"
    )
    return f"answers, version {info.get('valkey_version') or info.get('redis_version')}, {durability}"


async def _check_qdrant(resources: Resources) -> str:
    return f"answers, version {await resources.qdrant.version()}"


async def _check_language_model(resources: Resources) -> str:
    if resources.language_model is None:
        return "not configured: memories stay as they are written"
    await resources.language_model.complete("Answer with the word ok.", "ok?")
    return f"answers, model {await resources.language_model.name()}"


async def _check_judge(resources: Resources) -> str:
    if resources.judge_model is None:
        return "not configured: nothing is judged"
    if resources.judge_model is resources.language_model:
        return "the language model"
    await resources.judge_model.complete("Answer with the word ok.", "ok?")
    return f"answers, model {await resources.judge_model.name()}"


async def _check_embeddings(resources: Resources) -> str:
    if resources.embedder is None:
        return "not configured: search is by keyword"
    vectors = await resources.embedder.embed(["doctor"])
    return f"answers, model {await resources.embedder.name()}, {len(vectors[0])} dimensions"


async def _check_files(resources: Resources) -> str:
    if resources.object_storage is None:
        return "not configured: files of documents lie in Postgres"
    await resources.object_storage.check()
    return f"answers, bucket {resources.settings.s3_bucket}"


def _print_outcomes(outcome_by_part: dict[str, tuple[bool, str]]) -> None:
    table = Table("part", "state", "details")
    for part, (is_ok, details) in outcome_by_part.items():
        table.add_row(part, "[green]ok[/]" if is_ok else "[red]failed[/]", details)
    Console().print(table)


async def _print_index(resources: Resources) -> None:
    async with resources.postgres.across_tenants() as tx:
        all_generations = await generations.list_generations(tx)
    table = Table("collection", "state", "model", "dimension")
    for generation in all_generations:
        model, dimension = generation.model or "keywords only", str(generation.dimension or "")
        table.add_row(generation.collection, generation.state, model, dimension)
    job_counts = await status.fleet_status(resources.postgres)
    console = Console()
    console.print(table)
    console.print(f"pending jobs: {job_counts['pending']}, dead jobs: {job_counts['dead']}")
    for pause in job_counts["paused"]:
        since = f"{pause['since']:%Y-%m-%d %H:%M} UTC"
        console.print(f"[red]{pause['stage']} is paused[/] since {since}: {pause['reason_code']}")
