"""Examine snippets: score each by the four criteria, in the caller's transaction. No model is asked here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shared.conversation.scratchpad.snippet import Snippet
from shared.dreams.promotion import criteria
from shared.dreams.promotion.criteria import NOT_JUDGED, Criterion, Score, Scores
from shared.dreams.promotion.promotion import Promotion, PromotionTarget, PromotionTrigger
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.business_context import queries as business_queries
from shared.memory.business_context.part import parts_of, text_of
from shared.memory.longterm import hit_queries
from shared.memory.longterm.filters import MemoryFilters
from shared.search.text.tokenizer import tokenize, tokenize_query

_MAX_KNOWN = 20
"""Memories that are compared with a snippet: those with most of its words."""
_ASKED_FOR = "asked for"


@dataclass(frozen=True, slots=True)
class Judgements:
    """How salient a model found snippets, by their ids, and why the others were not judged."""

    scores: Mapping[str, Score] = field(default_factory=dict)
    otherwise: str = NOT_JUDGED

    def of(self, snippet: Snippet) -> Score:
        """Return the salience of a snippet."""
        return self.scores.get(snippet.id) or criteria.salience(None, self.otherwise)


async def examine(
    tx: Transaction, scope: Scope, promotion: Promotion, snippets: Sequence[Snippet], judgements: Judgements
) -> dict[str, Scores]:
    """Return the scores of each snippet by its id."""
    lines = await _lines(tx) if promotion.target is PromotionTarget.BUSINESS_CONTEXT else []
    return {
        snippet.id: {
            Criterion.SALIENCE: judgements.of(snippet),
            Criterion.SURPRISAL: criteria.surprisal(
                snippet.content, [*lines, *await _known(tx, scope, snippet.content)]
            ),
            Criterion.FREQUENCY: criteria.frequency(snippet.count),
            Criterion.EXPLICIT: criteria.explicit(_reason(promotion)),
        }
        for snippet in snippets
    }


def _reason(promotion: Promotion) -> str | None:
    return promotion.reason or _ASKED_FOR if promotion.trigger is PromotionTrigger.EXPLICIT else None


async def _known(tx: Transaction, scope: Scope, content: str) -> list[frozenset[str]]:
    """Return the words of the memories that the scope sees and that have most words of a text."""
    terms = tokenize_query(content)
    rows = await hit_queries.list_matching(tx, scope, MemoryFilters(), terms, _MAX_KNOWN)
    return [frozenset(tokenize(row["content"])) for row in rows]


async def _lines(tx: Transaction) -> list[frozenset[str]]:
    parts = parts_of(await business_queries.list_rows(tx))
    return [frozenset(tokenize(line)) for line in text_of(parts).splitlines()]
