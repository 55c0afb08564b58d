"""Summarise pending and dead jobs: for a tenant, for metrics and for `loci doctor`."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping

from shared.foundation.stages import (
    EMBED,
    ENRICH,
    INDEX,
    MINE_PASS,
    MINE_START,
    PARSE_DOCUMENT,
    PROMOTE,
    PUBLISH_DOCUMENT,
    SUMMARIZE,
    SUMMARIZE_SKILL,
)
from shared.infra.postgres import Postgres
from shared.jobs import backlog, model_pauses
from shared.jobs.model_pauses import Pause

NAMES = {
    ENRICH.name: "enrichment",
    EMBED.name: "embedding",
    INDEX.name: "index",
    MINE_START.name: "mining",
    MINE_PASS.name: "mining",
    PARSE_DOCUMENT.name: "documents",
    PROMOTE.name: "promotion",
    PUBLISH_DOCUMENT.name: "documents",
    SUMMARIZE.name: "summary",
    SUMMARIZE_SKILL.name: "summary",
}
"""The names of stages for callers."""


async def tenant_status(postgres: Postgres, tenant: str) -> dict[str, Any]:
    """Return {pending, dead, oldest_pending_seconds, delayed, paused}.

    `pending` and `dead` count jobs: {enrichment, embedding, index, mining, documents, promotion, summary}.
    `delayed` tells why jobs wait: [{stage, reason, rows}]. It is empty if no job is delayed. `paused` has
    the stages whose model refuses every request: [{stage, reason_code, since}]. Their jobs count as pending.
    """
    async with postgres.for_tenant(tenant) as tx:
        rows = await backlog.backlog_by_stage(tx, tenant)
        delayed_rows = await backlog.list_delayed(tx)
        pauses = await model_pauses.list_all(tx)
    delayed = [
        {"stage": NAMES[row["stage"]], "reason": row["reason"], "rows": row["rows"]}
        for row in delayed_rows
        if row["stage"] in NAMES
    ]
    return _summarise(rows) | {"delayed": delayed, "paused": _to_json(pauses)}


async def fleet_status(postgres: Postgres) -> dict[str, Any]:
    """Return the same as `tenant_status` over all tenants, without `delayed`."""
    async with postgres.across_tenants() as tx:
        rows = await backlog.backlog_by_stage(tx)
        pauses = await model_pauses.list_all(tx)
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
        # A scope that waits until it is at rest is not late: its turns are searchable.
        is_waiting = row["stage"] == MINE_START.name
        pending[NAMES[row["stage"]]] += row["backlog" if is_waiting else "pending"]
        dead[NAMES[row["stage"]]] += row["dead"]
    late = [row for row in rows if row["pending"] and row["stage"] != MINE_START.name]
    oldest = max((float(row["oldest_age_seconds"]) for row in late), default=0.0)
    return {"pending": pending, "dead": dead, "oldest_pending_seconds": round(max(oldest, 0.0), 3)}
