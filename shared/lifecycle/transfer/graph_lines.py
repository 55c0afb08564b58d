"""The lines of entities and triples in an export, and how they are parsed again.

A triple names its entities, and not their ids: an import finds the entity of the name in its own scope, or
makes it. A field that no line has is refused, because it would be lost.
"""

from datetime import datetime
from typing import Any, ClassVar, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from shared.foundation import errors, validation
from shared.foundation.origin import Trust
from shared.lifecycle.transfer import ndjson
from shared.lifecycle.transfer.ndjson import Moment
from shared.lifecycle.transfer.row_kind import LineKind
from shared.memory.graph.entity import Entity, EntityDraft, EntityType
from shared.memory.graph.invalidate import MAX_REASON
from shared.memory.graph.triple import Triple, TripleDraft, TripleSource

L = TypeVar("L", bound="GraphLine")
MAX_SOURCES = 1000


class GraphLine(BaseModel):
    """What the lines of entities and of triples have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)
    line_kind: ClassVar[LineKind]

    kind: str
    id: str
    created_at: Moment
    expired_at: Moment | None = None
    reason: str | None = None
    is_derived: bool = False
    is_kept: bool = False

    def check(self) -> None:
        """Raise errors.Invalid for an id or a reason that can't be stored."""
        validation.check_text(self.id, "id", validation.MAX_IDENTIFIER_LENGTH)
        if self.reason is not None:
            validation.check_single_line(self.reason, "reason", MAX_REASON)


class EntityLine(GraphLine):
    """A line of an entity."""

    line_kind = LineKind.GRAPH_ENTITY

    name: str
    type: EntityType
    aliases: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    updated_at: Moment | None = None
    last_referenced_at: Moment | None = None

    @property
    def draft(self) -> EntityDraft:
        """What of the line a caller could save, checked by the rules of callers."""
        fields = self.model_dump(include={"name", "type", "aliases", "metadata"})
        return EntityDraft(**fields).validated()


class TripleLine(GraphLine):
    """A line of a triple: `object` is a name, `literal` a text in its place."""

    line_kind = LineKind.GRAPH_TRIPLE

    subject: str
    subject_type: EntityType | None = None
    predicate: str
    object: str | None = None
    object_type: EntityType | None = None
    literal: str | None = None
    fact: str | None = None
    confidence: float
    valid_at: Moment | None = None
    invalid_at: Moment | None = None
    previous_invalid_at: Moment | None = None
    sources: tuple[TripleSource, ...] = ()
    # How far it was trusted where it comes from; without it, it is what its importer says.
    origin_trust: Trust | None = None

    @property
    def draft(self) -> TripleDraft:
        """What of the line a caller could save, checked by the rules of callers."""
        return TripleDraft(
            **self.model_dump(include=TripleDraft.model_fields.keys() - {"source"})
        ).validated()

    @property
    def times(self) -> tuple[datetime | None, datetime | None, datetime | None]:
        """What tells triples that say the same apart."""
        return self.valid_at, self.invalid_at, self.expired_at

    def check(self) -> None:
        """Raise errors.Invalid also for too many sources, or one that is none."""
        super().check()
        if len(self.sources) > MAX_SOURCES:
            raise errors.TooLarge("sources", f"must be at most {MAX_SOURCES}")
        for source in self.sources:
            source.validated()


def write_entity(entity: Entity) -> bytes:
    """Return an entity as a line, with its line break."""
    return _write(EntityLine, entity.to_json() | _hidden(entity, "is_derived", "is_kept"))


def write_triple(triple: Triple) -> bytes:
    """Return a triple as a line, with its line break."""
    is_literal = triple.object_id is None
    names: dict[str, Any] = {"object": None, "literal": triple.object} if is_literal else {"literal": None}
    more = _hidden(triple, "is_derived", "is_kept", "previous_invalid_at", "subject_type", "object_type")
    trust = {"origin_trust": triple.origin.trust}
    return _write(TripleLine, triple.to_json() | more | names | trust)


def _hidden(record: Entity | Triple, *fields: str) -> dict[str, Any]:
    """Return fields that a line carries and an answer doesn't show."""
    return {name: getattr(record, name) for name in fields}


def _write(model: type[GraphLine], fields: dict[str, Any]) -> bytes:
    carried = {name: fields[name] for name in model.model_fields if name != "kind"}
    return orjson.dumps({"kind": model.line_kind, **carried}, option=orjson.OPT_APPEND_NEWLINE)


def parse(model: type[L], raw: bytes) -> L:
    """Parse a line and check it. Raises errors.Invalid, naming the field and the rule."""
    ndjson.check_value_count(raw)
    try:
        line = model.model_validate(ndjson.load_object(raw))
    except ValidationError as error:
        raise ndjson.invalid_field(error) from None
    line.check()
    return line
