"""Fold entries that say the same to the letter but for punctuation: no model is needed for that.

Saves fold what differs in case and spacing only; this goes one step further, within a scope and
a category, and only where both speak of the same time.
"""

import unicodedata

from shared.dreams.runs.outcome import Creation, Nothing, Outcome
from shared.dreams.verification import fidelity, merge
from shared.dreams.verification.plan import Replacement
from shared.foundation.categories import ACTIVE_PLANS, is_below
from shared.memory.longterm import scope_queries
from shared.memory.longterm.memory import Entry
from workers.dream.pass_context import Night

_MARKS = ".,;:!?\u2026\"'()\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u3002\u3001\uff01\uff1f"


async def dream(night: Night) -> Outcome:
    """Decide which entries fold into which."""
    async with night.resources.postgres.tenant(night.run.tenant) as connection:
        entries = await scope_queries.of_scope(connection, night.run.scope)
    groups = [group for group in _groups(entries) if len(group) > 1 and _is_faithful(group)]
    if not groups:
        raise Nothing("no entries differ in spelling only")
    inputs = {entry.id: entry.version for group in groups for entry in group}
    return Outcome(inputs=inputs, creations=[_folded(group) for group in groups])


def _groups(entries: list[Entry]) -> list[list[Entry]]:
    by_fact: dict[tuple[object, ...], list[Entry]] = {}
    for entry in sorted(entries, key=lambda one: (-one.reinforcement_count, one.created_at, one.id)):
        if not is_below(ACTIVE_PLANS, entry.category):
            fact = (_spelled(entry.content), entry.category, entry.occurred_at)
            by_fact.setdefault(fact, []).append(entry)
    return list(by_fact.values())


def _spelled(text: str) -> str:
    """Return a text without the marks at its words' edges. Others tell: C# is not C, -5 is not 5."""
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return " ".join(filter(None, (word.strip(_MARKS) for word in words)))


def _is_faithful(group: list[Entry]) -> bool:
    """Keep apart what the marks, after all, told apart."""
    return fidelity.fault(group[0].content, group) is None


def _folded(group: list[Entry]) -> Creation:
    ids = tuple(entry.id for entry in group)
    kept = Replacement(group[0].content, group[0].category, (), ids, None)
    return Creation(merge.row_from_merge(merge.merged(kept, group)), tuple(group))
