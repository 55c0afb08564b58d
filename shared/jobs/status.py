"""Summarise pending and dead jobs: for a tenant, for metrics and for `loci doctor`."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping

from shared.foundation.stages import EMBED, ENRICH, INDEX
from shared.infra.postgres import Postgres
from shared.jobs import backlog

_NAMES = {ENRICH.name: "enrichment", EMBED.name: "embedding", INDEX.name: "index"}


async def tenant_status(postgres: Postgres, tenant: str) -> dict[str, Any]:
    """Return {pending: {enrichment, embedding, index}, dead, oldest_pending_seconds, delayed}.

    `delayed` tells why jobs wait: [{stage, reason, rows}]. It is empty if no job is delayed.
    """
    async with postgres.for_tenant(tenant) as connection:
        rows = await backlog.backlog_by_stage(connection, tenant)
        delayed_rows = await backlog.list_delayed(connection, tenant)
    delayed = [
        {"stage": _NAMES[row["stage"]], "reason": row["reason"], "rows": row["rows"]}
        for row in delayed_rows
        if row["stage"] in _NAMES
    ]
    return _summarise(rows) | {"delayed": delayed}


async def fleet_status(postgres: Postgres) -> dict[str, Any]:
    """Return the same as `tenant_status` over all tenants, without `delayed`."""
    async with postgres.across_tenants() as connection:
        rows = await backlog.backlog_by_stage(connection)
    return _summarise(rows)


def _summarise(rows: Sequence[RowMapping]) -> dict[str, Any]:
    pending = dict.fromkeys(_NAMES.values(), 0)
    dead = dict(pending)
    rows = [row for row in rows if row["stage"] in _NAMES]
    for row in rows:
        pending[_NAMES[row["stage"]]] += row["pending"]
        dead[_NAMES[row["stage"]]] += row["dead"]
    oldest = max((float(row["oldest_age_seconds"]) for row in rows if row["pending"]), default=0.0)
    return {"pending": pending, "dead": dead, "oldest_pending_seconds": round(max(oldest, 0.0), 3)}
