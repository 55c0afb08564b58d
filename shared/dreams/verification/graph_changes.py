"""The changes of a graph that a pass asks for, as data, and those that were made."""

from dataclasses import dataclass, field
from typing import Any, Literal

from shared.memory.graph.entity import EntityDraft
from shared.memory.graph.triple import TripleDraft, TripleSource

Record = Literal["entity", "triple"]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity that was extracted, and the turns or memories that name it."""

    draft: EntityDraft
    sources: tuple[TripleSource, ...]


@dataclass(frozen=True, slots=True)
class ExtractedTriple:
    """A triple that was extracted, and the turns or memories that say it."""

    draft: TripleDraft
    sources: tuple[TripleSource, ...]


@dataclass(frozen=True, slots=True)
class Expiry:
    """An entity or a triple that is to be invalidated, and the reason."""

    record: Record
    id: str
    reason: str


@dataclass(slots=True)
class GraphChanges:
    """What a pass asks for. `extracted` are the versions of the memories that it has read, by id."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    triples: list[ExtractedTriple] = field(default_factory=list)
    expiries: list[Expiry] = field(default_factory=list)
    extracted: dict[str, int] = field(default_factory=dict)
