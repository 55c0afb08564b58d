"""Pass `consolidate_graph`: invalidate what of a graph is stale, doubtful or orphaned; it needs no model.

Nothing is deleted: whoever undoes the run has all of it back, until the sweep purges what is over.
"""

from datetime import UTC, datetime, timedelta

from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.dreams.verification.graph_changes import Expiry, GraphChanges
from shared.memory.graph import stale_queries
from workers.passes.pass_context import PassContext

LOW_CONFIDENCE, STALE, ORPHAN = "low_confidence", "never_referenced", "orphan"
_MAX_EXPIRIES = 1000


async def run(context: PassContext) -> Outcome:
    """Choose what to invalidate: first triples, then events, then what no triple names any more."""
    scope = context.run.scope
    before = datetime.now(UTC) - timedelta(days=context.resources.settings.dream_graph_days)
    limited = (scope, before, _MAX_EXPIRIES)
    async with context.resources.postgres.for_tenant(scope.tenant) as connection:
        triples = await stale_queries.list_doubtful_triples(connection, *limited)
        events = await stale_queries.list_stale_events(connection, *limited)
        orphans = await stale_queries.list_orphans(connection, *limited)
    entities = {**dict.fromkeys(orphans, ORPHAN), **dict.fromkeys(events, STALE)}
    expiries = [Expiry("triple", id_, LOW_CONFIDENCE) for id_ in triples]
    expiries += [Expiry("entity", id_, reason) for id_, reason in entities.items()]
    if not expiries:
        raise PassSkipped("nothing in the graph is stale, doubtful or orphaned")
    has_more = max(map(len, (triples, events, orphans))) == _MAX_EXPIRIES
    inputs = {"triples": triples, "entities": sorted(entities)}
    return Outcome(inputs=inputs, graph=GraphChanges(expiries=expiries), has_more=has_more)
