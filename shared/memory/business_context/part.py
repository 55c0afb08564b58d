"""The parts of a business context: what people wrote, and promoted lines with their provenance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import RowMapping

from shared.foundation import prompt_safety
from shared.foundation.origin import Origin

MAX_CHARACTERS = 64_000
"""Characters of the text. It is meant to be read whole by a model."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. `snippet_id` is None for what people wrote."""

    id: str
    position: int
    content: str
    agent_id: str | None
    user_id: str | None
    session_id: str | None
    snippet_id: str | None
    reason: str | None
    created_at: datetime
    origin: Origin

    @classmethod
    def from_row(cls, row: RowMapping) -> "Row":
        """Read a row of `business_context_part`."""
        fields: dict[str, Any] = {**row}
        fields["origin"] = Origin.from_row(fields)
        return cls(**{name: fields[name] for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class Part:
    """The rows at one position. A promoted line is shown in the words of its first promotion."""

    rows: tuple[Row, ...]

    @property
    def text(self) -> str:
        """What the part shows: a promoted line, or one or more lines that people wrote."""
        return self.rows[0].content

    @property
    def is_promoted(self) -> bool:
        """Whether the part is a promoted line."""
        return self.rows[0].snippet_id is not None


def parts_of(rows: Iterable[Row]) -> list[Part]:
    """Return the parts that these rows make, in their order."""
    ordered = sorted(rows, key=attrgetter("position", "created_at", "id"))
    return [Part(tuple(group)) for _, group in groupby(ordered, key=attrgetter("position"))]


def text_of(parts: Sequence[Part]) -> str:
    """Return the text that these parts make."""
    return "\n".join(part.text for part in parts)


def origin_of(parts: Sequence[Part]) -> Origin | None:
    """Return the origin of the least trusted part; None for an empty text."""
    return min((part.rows[0].origin for part in parts), key=attrgetter("trust"), default=None)


def promoted_line(content: str) -> str:
    """Return the line that shows a promoted text. Whatever it holds, it can't begin another line."""
    return f"- {prompt_safety.single_line(content)}"


def provenance(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return where each promoted line comes from, with the number of the line in the text, from 1."""
    found: list[dict[str, Any]] = []
    line = 1
    for part in parts:
        if part.is_promoted:
            found += [{"line": line, **_source_of(row)} for row in part.rows]
        line += part.text.count("\n") + 1
    return found


def _source_of(row: Row) -> dict[str, Any]:
    names = ("agent_id", "user_id", "session_id", "snippet_id", "reason")
    origin = row.origin.model_dump(mode="json")
    created = {"created_at": row.created_at.isoformat(), "origin": origin}
    return {name: getattr(row, name) for name in names} | created
