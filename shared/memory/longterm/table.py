"""The tables of long-term memories, of their history, and of tombstones."""

from sqlalchemy import (
    BigInteger,
    Column,
    Computed,
    DateTime,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from shared.foundation.content import (
    Subject,
    content,
    names,
    names_collected,
    names_items,
    no_content,
)
from shared.infra.postgres import metadata

_EMPTY = text("'{}'")

memory = Table(
    "memory",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.MEMORY)),
    Column("agent_id", Text, nullable=False, info=names_collected(Subject.AGENT)),
    Column("user_id", Text, info=names_collected(Subject.USER)),
    Column("content", Text, nullable=False, info=content()),
    Column("category", Text, info=content()),
    Column("tags", ARRAY(Text), nullable=False, server_default=_EMPTY, info=content()),
    Column("metadata", JSONB, nullable=False, server_default=_EMPTY, info=content()),
    Column("importance", Double, nullable=False, server_default=text("0.5")),
    Column("state", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("failure_reason", Text, info=no_content("words of Loci about a model")),
    # The version of the point in the index: every change of a searchable field is a new version. An imported
    # memory may have the id of a deleted one; it begins with the time in microseconds, above all that were.
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    # The version of a recalled line: changes with content and category, not with reinforcement.
    Column("content_version", Integer, nullable=False, server_default=text("1")),
    Column("reinforcement_count", Integer, nullable=False, server_default=text("1")),
    Column("occurred_at", DateTime(timezone=True)),
    Column("sources", JSONB, nullable=False, server_default=text("'[]'"), info=content()),
    # The first source's turn key, for reading the memories of neighbour turns.
    Column(
        "source_session_id", Text, Computed("sources -> 0 ->> 'session_id'", persisted=True), info=content()
    ),
    Column("source_seq", Integer, Computed("(sources -> 0 ->> 'seq')::integer", persisted=True)),
    Column(
        "superseded_by", ARRAY(Text), nullable=False, server_default=_EMPTY, info=names_items(Subject.MEMORY)
    ),
    Column(
        "derived_from", ARRAY(Text), nullable=False, server_default=_EMPTY, info=names_items(Subject.MEMORY)
    ),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True)),
    Column("last_seen_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("archived_at", DateTime(timezone=True)),
    Column("archive_reason", Text, info=no_content("one of a fixed list")),
    # SHA-256 of normalised content and `occurred_at`: what makes two saves the same memory.
    Column("fingerprint", LargeBinary, nullable=False, info=content()),
    # Terms of the same tokenizer as the index, for search without the index.
    Column("search_terms", TSVECTOR, nullable=False, info=content()),
    PrimaryKeyConstraint("tenant", "id"),
)

# The columns of which a Memory is made; the others serve only statements.
READ_COLUMNS = [
    column
    for column in memory.c
    if column.name not in {"search_terms", "fingerprint", "source_session_id", "source_seq"}
]

Index(
    "memory_live_fingerprint_idx",
    memory.c.tenant,
    memory.c.agent_id,
    memory.c.user_id,
    memory.c.fingerprint,
    unique=True,
    postgresql_where=memory.c.archived_at.is_(None),
    postgresql_nulls_not_distinct=True,
)
Index("memory_newest_idx", memory.c.tenant, memory.c.agent_id, memory.c.last_seen_at.desc(), memory.c.id)
Index(
    "memory_source_idx",
    memory.c.tenant,
    memory.c.source_session_id,
    memory.c.source_seq,
    postgresql_where=memory.c.source_session_id.is_not(None),
)
Index("memory_search_terms_idx", memory.c.search_terms, postgresql_using="gin")
Index("memory_derived_from_idx", memory.c.derived_from, postgresql_using="gin")
Index("memory_archived_idx", memory.c.archived_at, postgresql_where=memory.c.archived_at.is_not(None))

memory_history = Table(
    "memory_history",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("memory_id", Text, nullable=False, info=names(Subject.MEMORY)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("actor", Text, nullable=False, info=no_content("the id of a key, or the name of a worker")),
    Column("action", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("reason", Text, info=content()),
    Column("before", JSONB, info=content()),
    Column("after", JSONB, info=content()),
)

Index("memory_history_memory_idx", memory_history.c.tenant, memory_history.c.memory_id, memory_history.c.id)

memory_tombstone = Table(
    "memory_tombstone",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("agent_id", Text, nullable=False, info=names(Subject.AGENT)),
    Column("user_id", Text, info=names(Subject.USER)),
    Column(
        "digest",
        LargeBinary,
        nullable=False,
        info=no_content("a keyed digest: it tells that a text was deleted, and not which"),
    ),
    Column("memory_id", Text, nullable=False, info=no_content("a random id")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    UniqueConstraint("tenant", "agent_id", "user_id", "digest", postgresql_nulls_not_distinct=True),
)
