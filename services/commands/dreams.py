"""The work of `loci dreams …`: list, run, show and undo dream runs in the terminal."""

import asyncio
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from services.commands.output import print_json
from services.commands.resources import ACTOR, command_line_caller, with_resources
from shared.dreams.runs import read, start
from shared.dreams.runs import undo as undo_run
from shared.dreams.runs.dream_run import Pass, PassState, Run, RunState
from shared.foundation.optional_fields import without_none
from shared.foundation.scope import DEFAULT_AGENT, Scope
from shared.platform.resources import Resources

_POLL_SECONDS = 0.3
_MAX_LISTED_RUNS = 50


def show_all(tenant: str, agent: str | None, user: str | None) -> None:
    """Print a table of the newest runs, of an agent or user if one is given."""
    caller, filters = command_line_caller(tenant), without_none(agent_id=agent, user_id=user)
    runs = with_resources(lambda resources: read.list_runs(resources, caller, filters, _MAX_LISTED_RUNS))
    table = Table("run", "agent", "user", "state", "started", "ended", "by")
    for run in runs:
        started = f"{run.created_at:%Y-%m-%d %H:%M:%S}"
        ended = f"{run.finished_at:%Y-%m-%d %H:%M:%S}" if run.finished_at else ""
        state = f"{run.state}{' (dry)' if run.dry_run else ''}"
        table.add_row(run.id, run.agent_id, run.user_id or "", state, started, ended, run.actor)
    Console().print(table)


def follow(tenant: str, agent: str | None, user: str | None, *, dry_run: bool) -> None:
    """Start a run and print a line for each pass that ends. Workers must be running."""
    scope = Scope(tenant, agent or DEFAULT_AGENT, user)
    with_resources(lambda resources: _follow(resources, scope, dry_run=dry_run))


async def _follow(resources: Resources, scope: Scope, *, dry_run: bool) -> None:
    started_run = await start.start_on_demand(resources, scope, ACTOR, (), dry_run=dry_run)
    sys.stdout.write(f"run {started_run['id']}\n")
    caller = command_line_caller(scope.tenant)
    printed_names: set[str] = set()
    while True:
        run = await read.read_run(resources, caller, started_run["id"])
        for pass_ in run.passes:
            if pass_.state is not PassState.WAITING and pass_.name not in printed_names:
                printed_names.add(pass_.name)
                sys.stdout.write(f"  {format_pass(pass_)}\n")
                sys.stdout.flush()
        if run.state is not RunState.RUNNING:
            return
        await asyncio.sleep(_POLL_SECONDS)


def format_pass(pass_: Pass) -> str:
    """Return a pass as one line: its name, state, duration, and what it changed."""
    seconds = 0.0
    if pass_.started_at and pass_.finished_at:
        seconds = (pass_.finished_at - pass_.started_at).total_seconds()
    changes = ", ".join(f"{count} {action}" for action, count in pass_.applied.items())
    rejections = f"{len(pass_.rejections)} refused" if pass_.rejections else ""
    result = "; ".join(part for part in (pass_.reason, changes, rejections) if part)
    return f"{pass_.name:<20} {pass_.state:<8} {seconds:6.1f} s  {result}"


def show(tenant: str, run_id: str) -> None:
    """Print a run with its passes and its diff, as JSON."""
    run, changes = with_resources(lambda resources: _load_run(resources, tenant, run_id))
    print_json(run.model_dump(mode="json") | {"diff": changes})


async def _load_run(resources: Resources, tenant: str, run_id: str) -> tuple[Run, list[dict[str, Any]]]:
    caller = command_line_caller(tenant)
    run = await read.read_run(resources, caller, run_id)
    return run, await read.read_changes(resources, caller, run_id)


def undo(tenant: str, run_id: str) -> None:
    """Undo a run and print what was restored, deleted and kept, as JSON."""
    print_json(
        with_resources(lambda resources: undo_run.undo(resources, command_line_caller(tenant), run_id))
    )
