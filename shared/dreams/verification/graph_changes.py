"""The changes of a graph that a pass asks for, as data, and those that were made."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from shared.foundation.origin import Trust
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
    """A triple that was extracted, the turns or memories that say it, and the least trust of these."""

    draft: TripleDraft
    sources: tuple[TripleSource, ...]
    trust: Trust


@dataclass(frozen=True, slots=True)
class Expiry:
    """An entity or a triple that is to be invalidated, and the reason.

    A triple may be so because of another one, `other_id`, that has to be there still; `at` is since when.
    """

    record: Record
    id: str
    reason: str
    other_id: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EntityMerge:
    """Two entities that are one: the names and triples of the dropped one go to the one that is kept."""

    kept_id: str
    dropped_id: str


@dataclass(slots=True)
class GraphChanges:
    """What a pass asks for, and what follows from what it does to memories.

    `extracted` are the versions of the memories that it has read, by id. `reviewed` are the ids of entities
    that it has compared with others. With `closes_facts`, triples end whose memories anybody has closed.
    """

    entities: list[ExtractedEntity] = field(default_factory=list)
    triples: list[ExtractedTriple] = field(default_factory=list)
    merges: list[EntityMerge] = field(default_factory=list)
    expiries: list[Expiry] = field(default_factory=list)
    extracted: dict[str, int] = field(default_factory=dict)
    reviewed: list[str] = field(default_factory=list)
    closed_memories: list[str] = field(default_factory=list)
    closes_facts: bool = False
