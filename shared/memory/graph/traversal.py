"""What a traversal of the graph finds: triples, each with its distance."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping

from shared.memory.graph.names import fold
from shared.memory.graph.triple import line_of

MAX_HOPS = 2


@dataclass(frozen=True, slots=True)
class Step:
    """A triple that was reached. `hop` is 1 for the triples of the entities themselves."""

    id: str
    hop: int
    subject_id: str
    object_id: str | None
    subject: str
    predicate: str
    object: str
    confidence: float
    fact: str | None
    valid_at: datetime | None
    invalid_at: datetime | None
    user_id: str | None

    @classmethod
    def from_row(cls, row: RowMapping) -> "Step":
        """Build a step from a row of a traversal."""
        return cls(**{field.name: row[field.name] for field in fields(cls)})

    @property
    def line(self) -> str:
        """The triple as a context shows it, with names."""
        return line_of(self.subject, self.predicate, self.object, self.confidence)

    def to_json(self) -> dict[str, Any]:
        """Return it as the API does."""
        shown = {field.name: getattr(self, field.name) for field in fields(self)}
        times = {
            name: time.isoformat() if (time := shown[name]) else None for name in ("valid_at", "invalid_at")
        }
        return shown | times | {"line": self.line}


def join_same(steps: Iterable[Step]) -> list[Step]:
    """Return the steps in their order; of two that say the same, the user's own in the first place."""
    by_words: dict[tuple[str, ...], Step] = {}
    for step in steps:
        words = (fold(step.subject), step.predicate, fold(step.object))
        known = by_words.get(words)
        if known is None or (known.user_id is None and step.user_id is not None):
            by_words[words] = step
    return list(by_words.values())
