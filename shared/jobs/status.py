"""Summarise pending and dead jobs: for a tenant, for metrics and for `loci doctor`."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping

from shared.foundation.stages import EMBED, ENRICH, INDEX
from shared.infra.postgres import Postgres
from shared.jobs import backlog, model_pauses
from shared.jobs.model_pauses import Pause

NAMES = {ENRICH.name: "enrichment", EMBED.name: "embedding", INDEX.name: "index"}
"""The names of stages for callers."""


async def tenant_status(postgres: Postgres, tenant: str) -> dict[str, Any]:
    """Return {pending: {enrichment, embedding, index}, dead, oldest_pending_seconds, delayed, paused}.

    `delayed` tells why jobs wait: [{stage, reason, rows}]. It is empty if no job is delayed. `paused` has the
    stages whose model refuses every request: [{stage, reason_code, since}]. Their jobs count as pending.
    """
    async with postgres.for_tenant(tenant) as connection:
        rows = await backlog.backlog_by_stage(connection, tenant)
        delayed_rows = await backlog.list_delayed(connection, tenant)
        pauses = await model_pauses.list_all(connection)
    delayed = [
        {"stage": NAMES[row["stage"]], "reason": row["reason"], "rows": row["rows"]}
        for row in delayed_rows
        if row["stage"] in NAMES
    ]
    return _summarise(rows) | {"delayed": delayed, "paused": _to_json(pauses)}


async def fleet_status(postgres: Postgres) -> dict[str, Any]:
    """Return the same as `tenant_status` over all tenants, without `delayed`."""
    async with postgres.across_tenants() as connection:
        rows = await backlog.backlog_by_stage(connection)
        pauses = await model_pauses.list_all(connection)
    return _summarise(rows) | {"paused": _to_json(pauses)}


def _to_json(pauses: Sequence[Pause]) -> list[dict[str, Any]]:
    return [
        {"stage": pause.stage, "reason_code": pause.reason_code, "since": pause.since} for pause in pauses
    ]


def _summarise(rows: Sequence[RowMapping]) -> dict[str, Any]:
    pending = dict.fromkeys(NAMES.values(), 0)
    dead = dict(pending)
    rows = [row for row in rows if row["stage"] in NAMES]
    for row in rows:
        pending[NAMES[row["stage"]]] += row["pending"]
        dead[NAMES[row["stage"]]] += row["dead"]
    oldest = max((float(row["oldest_age_seconds"]) for row in rows if row["pending"]), default=0.0)
    return {"pending": pending, "dead": dead, "oldest_pending_seconds": round(max(oldest, 0.0), 3)}
