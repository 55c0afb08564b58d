"""Score the facts that were taken out of labelled conversations (`examples/mining`).

A fact is right if it says a labelled one: it has all of its words and shares a source with it. It is wrong if
it says what is labelled as none, or nothing that is labelled. Of facts that say the same one, one counts. A
memory is wrongly closed if no labelled fact changes it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.dreams.verification.fact_check import Fact
from shared.dreams.verification.fact_plan import Relation

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConversationScore:
    """What became of one conversation; all but `right` name contents, and are empty if all went well."""

    right: int = 0
    wrong: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    wrongly_closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MiningScore:
    """The scores of all conversations by id. Precision is 1 if nothing was stored."""

    by_conversation: Mapping[str, ConversationScore] = field(default_factory=dict)

    @property
    def right(self) -> int:
        """How many labelled facts were stored."""
        return self._count("right")

    @property
    def wrong(self) -> int:
        """How many other facts were stored."""
        return self._count("wrong")

    @property
    def missed(self) -> int:
        """How many labelled facts were not stored."""
        return self._count("missed")

    @property
    def precision(self) -> float:
        """The share of the stored facts that are right."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """The share of the labelled facts that were stored."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def wrongly_closed(self) -> int:
        """How many memories were closed that had not changed."""
        return self._count("wrongly_closed")

    def _count(self, name: str) -> int:
        values = (getattr(score, name) for score in self.by_conversation.values())
        return sum(value if isinstance(value, int) else len(value) for value in values)


def score_conversation(labelled: Json, facts: Iterable[Fact]) -> ConversationScore:
    """Compare the facts that were stored of a conversation with its labels."""
    missed: list[Json] = list(labelled["facts"])
    said: list[Json] = []
    wrong: list[str] = []
    changed_ids = {fact.get("of") for fact in labelled["facts"] if fact.get("relation") == "changed"}
    closed: list[str] = []
    for fact in facts:
        content, seqs = fact.proposed.content, [turn.seq for turn in fact.sources]
        if fact.of is not None and fact.relation is Relation.CHANGED and fact.of.id not in changed_ids:
            closed.append(fact.of.content)
        if any(_says(content, seqs, label) for label in labelled["none"]):
            wrong.append(content)
            continue
        found = [label for label in missed if _says(content, seqs, label)]
        said += found
        missed = [label for label in missed if label not in found]
        if not found and not any(_says(content, seqs, label) for label in said):
            wrong.append(content)
    return ConversationScore(
        right=len(said),
        wrong=tuple(wrong),
        missed=tuple(label["content"] for label in missed),
        wrongly_closed=tuple(closed),
    )


def _says(content: str, seqs: Sequence[int], label: Json) -> bool:
    if not set(seqs) & set(label["sources"]):
        return False
    return all(re.search(words, content, re.IGNORECASE) for words in label["words"])
