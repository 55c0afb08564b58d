"""Carry out a promotion: store what qualifies where it goes, and note what became of every snippet.

All of it is one transaction with the end of the promotion, under the lock of the session's row. A snippet is
marked as promoted in the same transaction that stores its text, so that it may be evicted: nothing is lost.
"""

from collections import Counter
from collections.abc import Sequence

from shared.conversation.scratchpad import queries as scratchpad_queries
from shared.conversation.scratchpad.snippet import Snippet
from shared.conversation.sessions.session import Session
from shared.dreams.promotion import criteria, queries, targets
from shared.dreams.promotion.criteria import Criterion, Scores
from shared.dreams.promotion.examine import Judgements, examine
from shared.dreams.promotion.promotion import Promotion, PromotionResult, PromotionTarget, SnippetOutcome
from shared.dreams.promotion.targets import Stored, StoredSnippets
from shared.foundation.config import Settings
from shared.infra.transaction import Transaction
from shared.jobs import counters as fleet_counters
from shared.memory.business_context import queries as business_queries
from shared.memory.longterm import save
from shared.records.transaction import RecordTransaction

_IS_STORED = frozenset({SnippetOutcome.PROMOTED, SnippetOutcome.REINFORCED})


async def lock_target(tx: Transaction, target: PromotionTarget) -> None:
    """Lock the business context, if it is where the snippets go. This lock comes before the session's."""
    if target is PromotionTarget.BUSINESS_CONTEXT:
        await business_queries.lock(tx)


async def carry_out(
    tx: RecordTransaction,
    settings: Settings,
    session: Session,
    promotion: Promotion,
    snippets: Sequence[Snippet],
    judgements: Judgements,
) -> Promotion:
    """Examine snippets of a locked session, and promote those that qualify."""
    scores = await examine(tx, session.scope, promotion, snippets, judgements)
    chosen = [snippet for snippet in snippets if criteria.qualifies(scores[snippet.id])]
    stored = StoredSnippets()
    if promotion.target is PromotionTarget.BUSINESS_CONTEXT:
        chosen = [snippet for snippet in chosen if targets.may_lead(promotion, snippet)]
    if chosen and promotion.target is PromotionTarget.BUSINESS_CONTEXT:
        reasons = {snippet.id: _reason(scores[snippet.id]) for snippet in chosen}
        stored = await targets.add_lines(tx, session, chosen, reasons)
    elif chosen:
        stored = await targets.save_memories(tx, settings, session, promotion, chosen)
    promoted_ids = [id_ for id_, outcome in stored.by_id.items() if outcome.outcome in _IS_STORED]
    await scratchpad_queries.mark_promoted(tx, session.id, promoted_ids)
    results = [_result(snippet, scores[snippet.id], stored.by_id.get(snippet.id)) for snippet in snippets]
    done = await queries.finish(tx, promotion, results)
    await fleet_counters.increment(tx, "promotions", Counter(result.outcome for result in results))
    await save.index(tx, stored.memories)
    return done


def _reason(scores: Scores) -> str:
    """Return why a snippet was promoted: the criteria that it meets, with their reasons."""
    return "; ".join(f"{name}: {scores[name].reason}" for name in Criterion if scores[name].is_met)


def _result(snippet: Snippet, scores: Scores, stored: Stored | None) -> PromotionResult:
    stored = stored or Stored(SnippetOutcome.NOT_PROMOTED)
    return PromotionResult(
        id=snippet.id,
        outcome=stored.outcome,
        scores={name: score.to_json() for name, score in scores.items()},
        memory_id=stored.memory_id,
        line_id=stored.line_id,
    )
