"""Dreams in the terminal."""

import asyncio
import sys

import orjson
from rich.console import Console
from rich.table import Table

from services.commands.resources import with_resources
from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs import start
from shared.dreams.runs import undo as undo_run
from shared.dreams.runs.dream_run import Pass, PassState, Run, RunState
from shared.foundation import errors
from shared.foundation.scope import DEFAULT_AGENT, Caller, Scope
from shared.platform.resources import Resources

_POLL = 0.3
_ACTOR = "command-line"


def show_all(tenant: str, agent: str | None, user: str | None) -> None:
    """Print a table of runs."""
    asked = {"agent_id": agent, "user_id": user}
    wanted = {name: value for name, value in asked.items() if value is not None}
    runs = with_resources(lambda resources: _runs(resources, tenant, wanted))
    table = Table("run", "agent", "user", "state", "begun", "ended", "by")
    for run in runs:
        ended = f"{run.finished_at:%Y-%m-%d %H:%M:%S}" if run.finished_at else ""
        state = f"{run.state}{' (dry)' if run.dry_run else ''}"
        begun = f"{run.created_at:%Y-%m-%d %H:%M:%S}"
        table.add_row(run.id, run.agent_id, run.user_id or "", state, begun, ended, run.actor)
    Console().print(table)


async def _runs(resources: Resources, tenant: str, wanted: dict[str, str]) -> list[Run]:
    async with resources.postgres.for_tenant(tenant) as connection:
        return await dream_queries.page(connection, _caller(tenant), wanted, 50, None)


def _caller(tenant: str) -> Caller:
    return Caller(_ACTOR, tenant, frozenset({"read", "write", "admin"}))


def follow(tenant: str, agent: str | None, user: str | None, *, dry_run: bool) -> None:
    """Begin a run and print a line for each pass that ends; workers must be running."""
    scope = Scope(tenant, agent or DEFAULT_AGENT, user)
    with_resources(lambda resources: _follow(resources, scope, dry_run=dry_run))


async def _follow(resources: Resources, scope: Scope, *, dry_run: bool) -> None:
    begun = await start.start_on_demand(resources, scope, _ACTOR, (), dry_run=dry_run)
    sys.stdout.write(f"run {begun['id']}\n")
    told: set[str] = set()
    while True:
        run = await _get(resources, scope.tenant, begun["id"])
        for one in run.passes:
            if one.state is not PassState.WAITING and one.name not in told:
                told.add(one.name)
                sys.stdout.write(f"  {line(one)}\n")
                sys.stdout.flush()
        if run.state is not RunState.RUNNING:
            return
        await asyncio.sleep(_POLL)


async def _get(resources: Resources, tenant: str, run_id: str) -> Run:
    async with resources.postgres.for_tenant(tenant) as connection:
        run = await dream_queries.get(connection, tenant, run_id)
    if run is None:
        raise errors.NotFound(f"no dream run '{run_id}'")
    return run


def line(one: Pass) -> str:
    """Return a pass as one line: what it is, how it ended, what it did."""
    took = (one.finished_at - one.started_at).total_seconds() if one.finished_at and one.started_at else 0
    did = ", ".join(f"{count} {action}" for action, count in one.applied.items())
    refused = f"{len(one.rejections)} refused" if one.rejections else ""
    told = "; ".join(part for part in (one.reason, did, refused) if part)
    return f"{one.name:<20} {one.state:<8} {took:6.1f} s  {told}"


def show(tenant: str, run_id: str) -> None:
    """Print a run with its passes and its diff, as JSON."""
    run, changes = with_resources(lambda resources: _whole(resources, tenant, run_id))
    told = run.model_dump(mode="json") | {"diff": changes}
    sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")


async def _whole(resources: Resources, tenant: str, run_id: str) -> tuple[Run, list[dict[str, object]]]:
    run = await _get(resources, tenant, run_id)
    async with resources.postgres.for_tenant(tenant) as connection:
        return run, await dream_queries.changes(connection, tenant, run_id)


def undo(tenant: str, run_id: str) -> None:
    """Undo a run and print what came of it, as JSON."""
    told = with_resources(lambda resources: undo_run.undo(resources, _caller(tenant), run_id))
    sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")
