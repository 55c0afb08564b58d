"""Triples as they are written, stored and returned by the API.

Two pairs of times tell when a triple holds. `valid_at` and `invalid_at` are the world's: since when, and
until when, what it says is so. `created_at` and `expired_at` are the system's: when it was written down, and
when it was invalidated. At a time t it is shown if valid_at ≤ t < invalid_at and t < expired_at; a time that
is not set is no limit.
"""

import re
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from shared.foundation import errors, prompt_safety, validation
from shared.foundation.origin import UNKNOWN, Origin
from shared.foundation.scope import Scope
from shared.memory.graph import names
from shared.memory.graph.entity import EntityType

MAX_PREDICATE = 64
MAX_LITERAL = 1000
MAX_FACT = 2000
DEFAULT_CONFIDENCE = 0.5
CONFIDENCE_DIGITS = 4
_NOT_SNAKE = re.compile(r"[\W_]+")
# What a name would need to look like another triple within the line of its own.
_ARROW = re.compile("-{2,}")
_CONFIDENCE = re.compile(r"\(\s*confidence\s*=", re.IGNORECASE)


class TripleSource(BaseModel):
    """Where a triple comes from: a turn of a session, the session as a whole, or a memory."""

    model_config = ConfigDict(frozen=True)

    session_id: str | None = None
    seq: int | None = None
    memory_id: str | None = None

    def validated(self) -> "TripleSource":
        """Return it; raise errors.Invalid unless it names a session, perhaps with a turn, or a memory."""
        if (self.session_id is None) is (self.memory_id is None):
            raise errors.Invalid("source", "must name a session_id, perhaps with a seq, or a memory_id")
        if self.seq is not None and (self.session_id is None or not 1 <= self.seq < 2**31):
            raise errors.Invalid("source.seq", "must be the number of a turn of session_id")
        for field in ("session_id", "memory_id"):
            if (value := getattr(self, field)) is not None:
                validation.check_text(value, f"source.{field}", validation.MAX_IDENTIFIER_LENGTH)
        return self


class TripleDraft(BaseModel):
    """A triple to be saved. `subject` and `object` are ids or names of entities; a literal is a text."""

    model_config = ConfigDict(frozen=True)

    subject: str
    predicate: str
    object: str | None = None
    literal: str | None = None
    subject_type: EntityType | None = None
    object_type: EntityType | None = None
    fact: str | None = None
    confidence: float = DEFAULT_CONFIDENCE
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    source: TripleSource | None = None

    def validated(self) -> "TripleDraft":
        """Return the draft as it will be stored; raise errors.Invalid that names the field and the rule."""
        if (self.object is None) is (self.literal is None):
            raise errors.Invalid("object", "must be given, or a literal in its place")
        if self.literal is not None:
            validation.check_single_line(self.literal, "literal", MAX_LITERAL)
        if self.fact is not None:
            validation.check_text(self.fact, "fact", MAX_FACT)
        if not 0 <= self.confidence <= 1:
            raise errors.Invalid("confidence", "must be 0 to 1")
        if self.source is not None:
            self.source.validated()
        update: dict[str, Any] = {
            "subject": names.check_name(self.subject, "subject"),
            "object": None if self.object is None else names.check_name(self.object, "object"),
            "predicate": check_predicate(self.predicate),
            # What models and callers compute, such as 1.2 * 0.7, has digits that nobody means.
            "confidence": round(self.confidence, CONFIDENCE_DIGITS),
        }
        return self.model_copy(update=update | self._times())

    def _times(self) -> dict[str, datetime | None]:
        times = {
            name: None if value is None else validation.check_time(value, name)
            for name, value in (("valid_at", self.valid_at), ("invalid_at", self.invalid_at))
        }
        if times["valid_at"] and times["invalid_at"] and times["valid_at"] > times["invalid_at"]:
            raise errors.Invalid("invalid_at", "must not be before valid_at")
        return times


def check_predicate(text: str) -> str:
    """Return a predicate in lower_snake form, such as `works_on`: at most 64 characters."""
    validation.check_single_line(text, "predicate", MAX_PREDICATE)
    predicate = _NOT_SNAKE.sub("_", text.casefold()).strip("_")
    if not predicate:
        raise errors.Invalid("predicate", "must have a letter or a digit")
    return predicate[:MAX_PREDICATE]


class Triple(BaseModel):
    """A triple as stored in Postgres. `object` is the name of `object_id`, or the literal."""

    model_config = ConfigDict(frozen=True)

    id: str
    subject: str
    subject_id: str
    predicate: str
    object: str
    object_id: str | None
    fact: str | None
    confidence: float
    valid_at: datetime | None
    invalid_at: datetime | None
    created_at: datetime
    expired_at: datetime | None
    reason: str | None
    sources: list[TripleSource]
    agent_id: str
    user_id: str | None
    origin: Origin = UNKNOWN
    subject_type: EntityType = Field(exclude=True)
    object_type: EntityType | None = Field(exclude=True)
    previous_invalid_at: datetime | None = Field(exclude=True)
    is_derived: bool = Field(exclude=True)
    is_kept: bool = Field(default=False, exclude=True)
    tenant: str = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Triple":
        """Build a triple from a row of `graph_triple` with the names of its entities."""
        fields: dict[str, Any] = {**row}
        return cls.model_validate(fields | {"origin": Origin.from_row(fields)})

    @property
    def scope(self) -> Scope:
        """The scope that the triple belongs to."""
        return Scope(self.tenant, self.agent_id, self.user_id)

    @property
    def line(self) -> str:
        """The triple as a context shows it: `- Alice --works_on--> RockBot (confidence=0.90)`."""
        return line_of(self.subject, self.predicate, self.object, self.confidence)

    def to_json(self) -> dict[str, Any]:
        """Return it as the API does."""
        return self.model_dump(mode="json")


def line_of(subject: str, predicate: str, object_: str, confidence: float) -> str:
    """Return the line of a triple, in which no name can look like an arrow or a confidence."""
    start, label, end = (_harmless(part) for part in (subject, predicate, object_))
    # The dashes before the label would make an arrow of its first signs.
    return f"- {start} --{label.lstrip('->')}--> {end} (confidence={confidence:.2f})"


def _harmless(name: str) -> str:
    return _CONFIDENCE.sub("(confidence: ", _ARROW.sub("\N{EN DASH}", prompt_safety.single_line(name)))
