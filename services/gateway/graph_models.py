"""The bodies of requests and responses on the knowledge graph."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from services.gateway.api_model import ApiModel, Count, RequestedTrust, UnitInterval, example
from shared.memory.graph.entity import Entity, EntityDraft, EntityType
from shared.memory.graph.traversal import MAX_HOPS
from shared.memory.graph.triple import DEFAULT_CONFIDENCE, TripleDraft, TripleSource

Hops = Annotated[Count, Field(ge=1, le=MAX_HOPS)]
Connections = Annotated[Count, Field(ge=1, le=100)]


class EntityBody(ApiModel):
    """A person, project, topic, tool, event or document. Its aliases join those that it has."""

    model_config = example(
        {"name": "RockBot", "type": "Project", "aliases": ["Rock Bot"], "metadata": {"team": "robotics"}}
    )

    name: str
    type: EntityType | None = None
    aliases: list[str] = []
    metadata: dict[str, str] = {}
    agent_id: str | None = None
    user_id: str | None = None

    def draft(self) -> EntityDraft:
        """Return the entity to save. Raise errors.Invalid if it breaks a rule."""
        fields = self.model_dump(exclude={"agent_id", "user_id"})
        return EntityDraft(**fields | {"aliases": tuple(self.aliases)}).validated()


class TripleSourceBody(ApiModel):
    """Where a triple comes from: a session, perhaps with a turn of it, or a memory."""

    session_id: str | None = None
    seq: Count | None = None
    memory_id: str | None = None


class TripleBody(ApiModel):
    """What connects two entities, each given by its name or id, or an entity and a literal text.

    A name that nobody has becomes an entity. `fact` says the same in a sentence.
    """

    model_config = example(
        {
            "subject": "Alice",
            "predicate": "works_on",
            "object": "RockBot",
            "subject_type": "Person",
            "fact": "Alice has been working on RockBot since May.",
            "confidence": 0.9,
            "valid_at": "2026-05-01T00:00:00Z",
        }
    )

    subject: str
    predicate: str
    object: str | None = None
    literal: str | None = None
    subject_type: EntityType | None = None
    object_type: EntityType | None = None
    fact: str | None = None
    confidence: UnitInterval = DEFAULT_CONFIDENCE
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    source: TripleSourceBody | None = None
    trust: RequestedTrust = None
    agent_id: str | None = None
    user_id: str | None = None

    def draft(self) -> TripleDraft:
        """Return the triple to save. Raise errors.Invalid if it breaks a rule."""
        fields = self.model_dump(exclude={"agent_id", "user_id", "source", "trust"})
        source = None if self.source is None else TripleSource(**self.source.model_dump())
        return TripleDraft(**fields, source=source).validated()


class InvalidateBody(ApiModel):
    """Why a triple does not hold any more, and since when; now, if that is not given."""

    model_config = example({"reason": "Alice has left the project."})

    reason: str
    invalid_at: datetime | None = None


class MatchBody(ApiModel):
    """A message whose entities are asked for, perhaps as they were known at a time."""

    model_config = example({"text": "How is Alice doing with Rock Bot?"})

    text: str
    as_of: datetime | None = None
    agent_id: str | None = None
    user_id: str | None = None


class TraverseBody(ApiModel):
    """The entities where a traversal begins, each given by its name or id: one, or several."""

    model_config = example({"entity": "Alice", "hops": 2})

    entity: str | None = None
    names: Annotated[list[str], Field(max_length=20)] = []
    hops: Hops = MAX_HOPS
    limit: Connections = 15
    as_of: datetime | None = None
    agent_id: str | None = None
    user_id: str | None = None

    @property
    def named(self) -> list[str]:
        """The names and ids of the entities."""
        return [*([] if self.entity is None else [self.entity]), *self.names]


class MatchedEntitiesResponse(ApiModel):
    """The entities that a message is about: the one that was referenced last comes first."""

    results: list[Entity]


class Connection(ApiModel):
    """A triple that a traversal has reached; `line` is how a context shows it."""

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
    line: str


class ConnectionsResponse(ApiModel):
    """What is connected with the entities: nearest first, then most certain."""

    results: list[Connection]
