"""Pass `consolidate_graph`: invalidate what of a graph is over, and merge entities that are one.

Without a model it invalidates what comes from closed memories, is doubtful, was never referenced, or is
named by nothing. With one it compares entities that look alike, and what is said of one subject, if they are
new or have changed since they were compared last. So a graph without changes costs no call.

Nothing is deleted: whoever undoes the run has all of it back, until the sweep purges what is over.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.dreams.runs.outcome import Outcome, PassSkipped
from shared.dreams.verification import graph_review_check, graph_review_plan
from shared.dreams.verification.graph_changes import Expiry, GraphChanges
from shared.dreams.verification.graph_review_check import CheckedReview, ShownGraph
from shared.foundation import errors, prompt_size
from shared.lifecycle import closed_fact_queries
from shared.memory.graph import review_queries, stale_queries
from workers.dream import graph_groups
from workers.dream.graph_groups import EntityGroup
from workers.passes import parts
from workers.passes.pass_context import PassContext

DIRECTIVE = "graph-consolidation"
LOW_CONFIDENCE, STALE, ORPHAN = "low_confidence", "never_referenced", "orphan"
_MAX_EXPIRIES = 1000
_MAX_REVIEWED = 2000


async def run(context: PassContext) -> Outcome:
    """Choose what to invalidate: first triples, then events, then what no triple names any more; and ask."""
    outcome = await _choose_over(context)
    changes = outcome.graph or GraphChanges()
    await _review(context, outcome, changes)
    if not (changes.expiries or changes.closes_facts or changes.reviewed):
        raise PassSkipped("nothing in the graph is over, doubtful, orphaned or to be compared")
    outcome.graph = changes
    return outcome


async def _choose_over(context: PassContext) -> Outcome:
    scope = context.run.scope
    before = datetime.now(UTC) - timedelta(days=context.resources.settings.dream_graph_days)
    limited = (scope, before, _MAX_EXPIRIES)
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        triples = await stale_queries.list_doubtful_triples(tx, *limited)
        events = await stale_queries.list_stale_events(tx, *limited)
        orphans = await stale_queries.list_orphans(tx, *limited)
        over = await closed_fact_queries.list_over(tx, scope, None, keeps=True, limit=_MAX_EXPIRIES)
    entities = {**dict.fromkeys(orphans, ORPHAN), **dict.fromkeys(events, STALE)}
    expiries = [Expiry("triple", id_, LOW_CONFIDENCE) for id_ in triples if id_ not in over]
    expiries += [Expiry("entity", id_, reason) for id_, reason in entities.items()]
    has_more = max(map(len, (triples, events, orphans, over))) == _MAX_EXPIRIES
    inputs = {"triples": sorted({*triples, *over}), "entities": sorted(entities)}
    changes = GraphChanges(expiries=expiries, closes_facts=bool(over))
    return Outcome(inputs=inputs, graph=changes, has_more=has_more)


async def _review(context: PassContext, outcome: Outcome, changes: GraphChanges) -> None:
    """Let the model compare what is new. Without an answer the rest of the pass is done all the same."""
    if context.resources.language_model is None:
        return
    scope = context.run.scope
    async with context.resources.postgres.for_tenant(scope.tenant) as tx:
        ids = await review_queries.list_unreviewed(tx, scope, _MAX_REVIEWED)
        over = {expiry.id for expiry in changes.expiries}
        groups = await graph_groups.load(tx, scope, [id_ for id_ in ids if id_ not in over])
    outcome.has_more |= len(ids) == _MAX_REVIEWED
    asked = await _ask_about(context, groups, outcome, changes) if groups else set()
    waiting = {entity.id for group in groups for entity in group.entities} - asked
    outcome.has_more |= bool(waiting)
    changes.reviewed = sorted({*ids, *asked} - waiting)


async def _ask_about(
    context: PassContext, groups: Sequence[EntityGroup], outcome: Outcome, changes: GraphChanges
) -> set[str]:
    """Ask about groups in parts, add what holds to the changes, and return the entities that were decided on.

    What got no usable answer is not asked about once more: it may be beyond the model.
    """
    inputs = dict(outcome.inputs)
    checked: list[CheckedReview] = []
    try:
        max_tokens = await context.free_tokens(DIRECTIVE) // 2

        def tokens_of(group: EntityGroup) -> int:
            return min(max_tokens, graph_groups.show([group], max_tokens).tokens)

        async def ask(part: list[EntityGroup]) -> None:
            prompt = graph_groups.show(part, max_tokens)
            reply = await context.ask(DIRECTIVE, prompt.text)
            shown = ShownGraph(prompt.entities, prompt.triples)
            checked.append(graph_review_check.check(graph_review_plan.parse(reply.text), shown))

        split = prompt_size.split(groups, tokens_of, max_tokens)
        answers = await parts.ask_in_parts(context, split, ask, lambda part: inputs | _inputs_of(part))
    except (errors.Unavailable, PassSkipped):
        return set()
    for review in checked:
        changes.merges += review.merges
        changes.expiries += review.expiries
        outcome.rejections += [
            {"code": item.code, "detail": item.detail, **item.item} for item in review.rejections
        ]
    outcome.rejections += answers.rejections(_name_part)
    decided = [*answers.items, *(group for part, _ in answers.refused for group in part)]
    outcome.inputs |= _inputs_of(decided)
    return {entity.id for group in decided for entity in group.entities}


def _inputs_of(groups: Sequence[EntityGroup]) -> dict[str, Any]:
    return {"compared": sorted({entity.id for group in groups for entity in group.entities})}


def _name_part(groups: Sequence[EntityGroup]) -> dict[str, Any]:
    return {"kind": "entities", "ids": _inputs_of(groups)["compared"][:50]}
