"""Fold entries that say the same to the letter but for punctuation: no model is needed for that.

Saves fold what differs in case and spacing only; this goes one step further, within a scope and
a category, and only where both speak of the same time.
"""

import unicodedata

from shared.dreams.runs.outcome import NewMemory, Outcome, PassSkipped
from shared.dreams.verification import fidelity, merge
from shared.dreams.verification.plan import Replacement
from shared.foundation.categories import ACTIVE_PLANS, is_below
from shared.memory.longterm import scope_queries
from shared.memory.longterm.memory import Memory
from workers.dream.pass_context import PassContext

_MARKS = ".,;:!?\u2026\"'()\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u3002\u3001\uff01\uff1f"


async def run(context: PassContext) -> Outcome:
    """Decide which entries fold into which."""
    async with context.resources.postgres.for_tenant(context.run.tenant) as connection:
        entries = await scope_queries.list_scope(connection, context.run.scope)
    groups = [group for group in _groups(entries) if len(group) > 1 and _is_faithful(group)]
    if not groups:
        raise PassSkipped("no entries differ in spelling only")
    inputs = {entry.id: entry.version for group in groups for entry in group}
    return Outcome(inputs=inputs, creations=[_folded(group) for group in groups])


def _groups(entries: list[Memory]) -> list[list[Memory]]:
    by_fact: dict[tuple[object, ...], list[Memory]] = {}
    for entry in sorted(entries, key=lambda one: (-one.reinforcement_count, one.created_at, one.id)):
        if not is_below(ACTIVE_PLANS, entry.category):
            fact = (_spelled(entry.content), entry.category, entry.occurred_at)
            by_fact.setdefault(fact, []).append(entry)
    return list(by_fact.values())


def _spelled(text: str) -> str:
    """Return a text without the marks at its words' edges. Others tell: C# is not C, -5 is not 5."""
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return " ".join(filter(None, (word.strip(_MARKS) for word in words)))


def _is_faithful(group: list[Memory]) -> bool:
    """Keep apart what the marks, after all, told apart."""
    return fidelity.first_fault(group[0].content, group) is None


def _folded(group: list[Memory]) -> NewMemory:
    ids = tuple(entry.id for entry in group)
    kept = Replacement(group[0].content, group[0].category, (), ids, None)
    return NewMemory(merge.row_from_merge(merge.merged(kept, group)), tuple(group))
