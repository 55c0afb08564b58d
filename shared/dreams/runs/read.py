"""Read dream runs and their changes, as far as the caller may see them."""

from datetime import datetime
from typing import Any

from shared.dreams.graph import queries as graph_queries
from shared.dreams.runs import queries
from shared.dreams.runs.dream_run import Run
from shared.dreams.skill_proposals import queries as proposal_queries
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area, Owner
from shared.platform.resources import Resources


async def list_runs(
    resources: Resources,
    caller: Caller,
    filters: dict[str, str],
    limit: int,
    after: tuple[datetime, str] | None = None,
) -> list[Run]:
    """Return runs, newest first, without their passes.

    `filters` are column values. `after` is the (created_at, id) of the last run of the previous page.
    """
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await queries.list_runs(tx, caller, filters, limit, after)


async def read_run(resources: Resources, caller: Caller, run_id: str) -> Run:
    """Return a run with its passes. Raise errors.NotFound if there is none that the caller may see."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await _get_visible(tx, caller, run_id)


async def read_changes(resources: Resources, caller: Caller, run_id: str) -> list[dict[str, Any]]:
    """Return what a run changed, in order. Raise errors.NotFound as `read_run` does."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        await _get_visible(tx, caller, run_id)
        of_memories = await queries.list_changes(tx, run_id)
        of_graph = await graph_queries.list_changes(tx, run_id)
        proposals = await proposal_queries.list_of_run(tx, run_id)
    of_skills = [change for proposal in proposals for change in proposal.changes()]
    return [
        *({"record": "memory", **change} for change in of_memories),
        *map(_of_graph, of_graph),
        *of_skills,
    ]


def _of_graph(change: dict[str, Any]) -> dict[str, Any]:
    """Return a change of an entity or a triple in the form of all changes."""
    shown = {name: change[name] for name in ("record", "pass", "action", "reason")}
    return {"entry_id": change["record_id"], **shown}


async def _get_visible(tx: Transaction, caller: Caller, run_id: str) -> Run:
    run = await queries.get(tx, run_id)
    missing = f"no dream run '{run_id}'"
    if run is None:
        raise errors.NotFound(missing)
    rights.require(caller, Area.DREAMS, Action.READ, Owner(run.agent_id, run.user_id), missing)
    return run
