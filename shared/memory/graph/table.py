"""The tables of the knowledge graph.

A triple of a user may name common entities, a common triple names common entities alone. So whoever sees a
triple sees its entities. Deleting an entity deletes its triples with it.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    and_,
    func,
    not_,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.foundation.content import (
    Subject,
    content,
    names,
    names_collected,
    names_turns,
    no_content,
)
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import BY_CHARACTERS, metadata

graph_entity = Table(
    "graph_entity",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.ENTITY)),
    Column("agent_id", Text, nullable=False, info=names_collected(Subject.AGENT)),
    # Without a user, it is common to all users of the agent.
    Column("user_id", Text, info=names_collected(Subject.USER)),
    Column("name", Text, nullable=False, info=content()),
    # The name as it is compared: an entity of the scope with the same one is the same entity.
    Column("folded_name", Text, nullable=False, info=content()),
    Column("type", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("aliases", ARRAY(Text), nullable=False, info=content()),
    Column("metadata", JSONB, nullable=False, info=content()),
    # Extracted by a dream, and named by no caller since: it goes with all of its sources.
    Column("is_derived", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True)),
    Column("last_referenced_at", DateTime(timezone=True)),
    Column("expired_at", DateTime(timezone=True)),
    Column("reason", Text, info=content()),
    # A caller has undone what a dream did to it: no dream expires it.
    Column("is_kept", Boolean, nullable=False, server_default=text("false")),
    # When a dream has last looked for what is the same, or does not hold any more.
    Column("reviewed_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "agent_id", "user_id", "folded_name", postgresql_nulls_not_distinct=True),
    CheckConstraint("type IN ('Person', 'Project', 'Topic', 'Tool', 'Event', 'Document')", name="type"),
)
Index("graph_entity_newest_idx", graph_entity.c.tenant, graph_entity.c.agent_id, graph_entity.c.id)
Index(
    "graph_entity_user_idx",
    graph_entity.c.tenant,
    graph_entity.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=graph_entity.c.user_id.is_not(None),
)
Index(
    "graph_entity_expired_idx",
    graph_entity.c.tenant,
    graph_entity.c.expired_at,
    postgresql_where=graph_entity.c.expired_at.is_not(None),
)

# The names and aliases that messages are searched for, by their first words.
graph_name = Table(
    "graph_name",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("entity_id", Text, nullable=False, info=names(Subject.ENTITY)),
    Column("folded", Text, nullable=False, info=content()),
    Column("key", Text, info=content()),
    Column("agent_id", Text, nullable=False, info=content()),
    Column("user_id", Text, info=content()),
    PrimaryKeyConstraint("tenant", "entity_id", "folded"),
    ForeignKeyConstraint(
        ["tenant", "entity_id"], ["graph_entity.tenant", "graph_entity.id"], ondelete="CASCADE"
    ),
)
# Of a name that many share, those of one owner are read in their order, as far as they are needed.
Index(
    "graph_name_key_idx",
    graph_name.c.tenant,
    graph_name.c.agent_id,
    graph_name.c.key,
    graph_name.c.user_id,
    graph_name.c.entity_id,
)
Index(
    "graph_name_folded_idx",
    graph_name.c.tenant,
    graph_name.c.agent_id,
    graph_name.c.folded,
    postgresql_ops={"folded": "text_pattern_ops"},
)

graph_triple = Table(
    "graph_triple",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.TRIPLE)),
    Column("agent_id", Text, nullable=False, info=names_collected(Subject.AGENT)),
    Column("user_id", Text, info=names_collected(Subject.USER)),
    Column("subject_id", Text, nullable=False, info=names(Subject.ENTITY)),
    Column("predicate", Text, nullable=False, info=content()),
    Column("object_id", Text, info=names(Subject.ENTITY)),
    Column("literal", Text, info=content()),
    # The object as it is compared: the id of the entity, or a digest of the literal's words.
    Column("object_key", Text, nullable=False, info=content()),
    Column("fact", Text, info=content()),
    Column("confidence", Double, nullable=False),
    Column("valid_at", DateTime(timezone=True)),
    Column("invalid_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expired_at", DateTime(timezone=True)),
    Column("reason", Text, info=content()),
    # What `invalid_at` was before the triple was invalidated.
    Column("previous_invalid_at", DateTime(timezone=True)),
    Column("is_derived", Boolean, nullable=False, server_default=text("false")),
    # Somebody has restored it: no dream invalidates it.
    Column("is_kept", Boolean, nullable=False, server_default=text("false")),
    *origin_columns(),
    PrimaryKeyConstraint("tenant", "id"),
    ForeignKeyConstraint(
        ["tenant", "subject_id"], ["graph_entity.tenant", "graph_entity.id"], ondelete="CASCADE"
    ),
    ForeignKeyConstraint(
        ["tenant", "object_id"], ["graph_entity.tenant", "graph_entity.id"], ondelete="CASCADE"
    ),
    CheckConstraint("(object_id IS NULL) <> (literal IS NULL)", name="object"),
    CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
    CheckConstraint("valid_at <= invalid_at", name="validity"),
)
IS_OPEN = and_(graph_triple.c.invalid_at.is_(None), graph_triple.c.expired_at.is_(None))
"""The triples of which a scope has no two with the same subject, predicate and object."""
Index(
    "graph_triple_open_idx",
    graph_triple.c.tenant,
    graph_triple.c.subject_id,
    graph_triple.c.predicate,
    graph_triple.c.object_key,
    graph_triple.c.agent_id,
    graph_triple.c.user_id,
    unique=True,
    postgresql_where=IS_OPEN,
    postgresql_nulls_not_distinct=True,
)
Index(
    "graph_triple_over_idx",
    graph_triple.c.tenant,
    graph_triple.c.subject_id,
    graph_triple.c.predicate,
    graph_triple.c.object_key,
    postgresql_where=not_(IS_OPEN),
)
Index(
    "graph_triple_subject_idx",
    graph_triple.c.tenant,
    graph_triple.c.subject_id,
    graph_triple.c.confidence.desc(),
    graph_triple.c.id,
)
Index(
    "graph_triple_object_idx",
    graph_triple.c.tenant,
    graph_triple.c.object_id,
    graph_triple.c.confidence.desc(),
    graph_triple.c.id,
    postgresql_where=graph_triple.c.object_id.is_not(None),
)
Index("graph_triple_newest_idx", graph_triple.c.tenant, graph_triple.c.agent_id, graph_triple.c.id)
Index(
    "graph_triple_user_idx",
    graph_triple.c.tenant,
    graph_triple.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=graph_triple.c.user_id.is_not(None),
)
Index(
    "graph_triple_expired_idx",
    graph_triple.c.tenant,
    graph_triple.c.expired_at,
    postgresql_where=graph_triple.c.expired_at.is_not(None),
)

# Where triples come from, and entities that a dream has extracted: turns, sessions or memories.
graph_source = Table(
    "graph_source",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("entity_id", Text, info=names(Subject.ENTITY)),
    Column("triple_id", Text, info=names(Subject.TRIPLE)),
    Column("session_id", Text, info=names(Subject.SESSION)),
    Column("seq", Integer, info=names_turns(Subject.WITHDRAWN_TURN, first_seq="seq")),
    Column("memory_id", Text, info=names(Subject.MEMORY)),
    ForeignKeyConstraint(
        ["tenant", "entity_id"], ["graph_entity.tenant", "graph_entity.id"], ondelete="CASCADE"
    ),
    ForeignKeyConstraint(
        ["tenant", "triple_id"], ["graph_triple.tenant", "graph_triple.id"], ondelete="CASCADE"
    ),
    CheckConstraint("(entity_id IS NULL) <> (triple_id IS NULL)", name="record"),
)
Index(
    "graph_source_record_idx",
    graph_source.c.tenant,
    graph_source.c.entity_id,
    graph_source.c.triple_id,
    graph_source.c.session_id,
    graph_source.c.seq,
    graph_source.c.memory_id,
    unique=True,
    postgresql_nulls_not_distinct=True,
)
Index("graph_source_triple_idx", graph_source.c.tenant, graph_source.c.triple_id)
Index(
    "graph_source_session_idx",
    graph_source.c.tenant,
    graph_source.c.session_id,
    graph_source.c.seq,
    postgresql_where=graph_source.c.session_id.is_not(None),
)
Index(
    "graph_source_memory_idx",
    graph_source.c.tenant,
    graph_source.c.memory_id,
    postgresql_where=graph_source.c.memory_id.is_not(None),
)

# What callers have deleted, so that no dream and no import brings it back.
graph_tombstone = Table(
    "graph_tombstone",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("agent_id", Text, nullable=False, info=names(Subject.AGENT)),
    Column("user_id", Text, info=names(Subject.USER)),
    Column(
        "digest",
        LargeBinary,
        nullable=False,
        info=no_content("a keyed digest: it tells that a record was deleted, and not which"),
    ),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    UniqueConstraint("tenant", "agent_id", "user_id", "digest", postgresql_nulls_not_distinct=True),
)
Index(
    "graph_tombstone_user_idx",
    graph_tombstone.c.tenant,
    graph_tombstone.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=graph_tombstone.c.user_id.is_not(None),
)
