"""The tables of long-term memories, of their history, of tombstones, and of sources that were deleted."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
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
    and_,
    func,
    literal_column,
    or_,
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
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import BY_CHARACTERS, metadata

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
    Column("failure_reason", Text, info=content()),
    # The version of the point in the index: every change of a searchable field is a new version. An imported
    # memory may have the id of a deleted one; it begins with the time in microseconds, above all that were.
    Column("version", BigInteger, nullable=False, server_default=text("1")),
    # The version of a recalled line: changes with content, category and rivals, not with reinforcement.
    Column("content_version", Integer, nullable=False, server_default=text("1")),
    Column("reinforcement_count", Integer, nullable=False, server_default=text("1")),
    Column("occurred_at", DateTime(timezone=True)),
    Column("sources", JSONB, nullable=False, server_default=text("'[]'"), info=content()),
    # The first source's turn key, for reading the memories of neighbour turns.
    Column(
        "source_session_id", Text, Computed("sources -> 0 ->> 'session_id'", persisted=True), info=content()
    ),
    Column("source_seq", Integer, Computed("(sources -> 0 ->> 'seq')::integer", persisted=True)),
    # Whether something that it was joined with was saved without a source: then it is not derived from its
    # sources alone.
    Column("saved_without_source", Boolean, nullable=False, server_default=text("false")),
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
    # Of a caller or of a worker; `archived_by` says of whom.
    Column("archive_reason", Text, info=content()),
    Column("archived_by", Text, info=no_content("one of a fixed list")),
    # The name that a caller gave to this memory in its scope; an empty namespace is none.
    Column("namespace", Text, nullable=False, server_default=text("''"), info=content()),
    Column("key", Text, info=content()),
    # The memory is valid at t if valid_from <= t < valid_until; null is open.
    Column("valid_from", DateTime(timezone=True)),
    Column("valid_until", DateTime(timezone=True)),
    # When the sweep deletes the memory, without a tombstone.
    Column("expires_at", DateTime(timezone=True)),
    # Who decided that it is stored, what the judge said of it, and which judge; null if it was stored before.
    Column("decided_by", Text, info=no_content("one of a fixed list")),
    Column("verdict", Text, info=no_content("one of a fixed list")),
    Column("judge_model", Text, info=no_content("the name of a model")),
    # The live memories that say otherwise. Triggers keep both sides in step, and end it when one of them is
    # archived, closed, deleted or says something else.
    Column(
        "contested_with", ARRAY(Text), nullable=False, server_default=_EMPTY, info=names_items(Subject.MEMORY)
    ),
    # SHA-256 of normalised content and `occurred_at`: what makes two saves the same memory.
    Column("fingerprint", LargeBinary, nullable=False, info=content()),
    # Terms of the same tokenizer as the index, for search without the index.
    Column("search_terms", TSVECTOR, nullable=False, info=content()),
    *origin_columns(),
    PrimaryKeyConstraint("tenant", "id"),
    CheckConstraint("namespace = '' OR key IS NOT NULL", name="namespace"),
    CheckConstraint("valid_from <= valid_until", name="validity"),
    # What has a key stays as it was written: no enrichment may replace it.
    CheckConstraint("key IS NULL OR state <> 'pending'", name="as_written"),
    CheckConstraint("archived_by IS NULL OR archived_at IS NOT NULL", name="archived_by"),
    CheckConstraint(
        "contested_with = '{}' OR (archived_at IS NULL AND valid_until IS NULL)", name="contested"
    ),
)

# The columns of which a Memory is made; the others serve only statements.
READ_COLUMNS = [
    column
    for column in memory.c
    if column.name not in {"search_terms", "fingerprint", "source_session_id", "source_seq"}
]

IS_DEDUPLICATED = and_(memory.c.archived_at.is_(None), memory.c.key.is_(None), memory.c.valid_until.is_(None))
"""The memories of which a scope has no two with one fingerprint: live, without a key, and not closed."""

IS_EVIDENCE = and_(
    memory.c.archived_by.in_(["enrichment", "dream"]),
    func.cardinality(memory.c.superseded_by) > 0,
    memory.c.valid_until.is_(None),
)
"""The memories for which `Memory.is_evidence` is true."""

IS_UNEXPIRED = or_(memory.c.expires_at.is_(None), memory.c.expires_at > func.now())
"""The memories that callers may see: what has expired is gone for them before the sweep deletes it."""

Index(
    "memory_live_fingerprint_idx",
    memory.c.tenant,
    memory.c.agent_id,
    memory.c.user_id,
    memory.c.fingerprint,
    unique=True,
    postgresql_where=IS_DEDUPLICATED,
    postgresql_nulls_not_distinct=True,
)
Index(
    "memory_live_key_idx",
    memory.c.tenant,
    memory.c.agent_id,
    memory.c.user_id,
    memory.c.namespace,
    memory.c.key,
    unique=True,
    postgresql_where=and_(memory.c.archived_at.is_(None), memory.c.key.is_not(None)),
    postgresql_nulls_not_distinct=True,
)
Index("memory_expiry_idx", memory.c.expires_at, postgresql_where=memory.c.expires_at.is_not(None))
Index("memory_newest_idx", memory.c.tenant, memory.c.agent_id, memory.c.last_seen_at.desc(), memory.c.id)
Index(
    "memory_user_idx",
    memory.c.tenant,
    memory.c.user_id,
    memory.c.last_seen_at,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=memory.c.user_id.is_not(None),
)
Index(
    "memory_agent_user_idx",
    memory.c.tenant,
    memory.c.agent_id,
    memory.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=memory.c.user_id.is_not(None),
)
Index(
    "memory_source_idx",
    memory.c.tenant,
    memory.c.source_session_id,
    memory.c.source_seq,
    postgresql_where=memory.c.source_session_id.is_not(None),
)
MIN_OVERSIZED = 2000
"""Characters from which on a memory may count as oversized: the index holds no others."""
IS_TO_COMPACT = text(
    f"state = 'final' AND key IS NULL AND failure_reason IS NULL AND length(content) > {MIN_OVERSIZED}"
)
"""The long memories that are final, and that nobody has tried to compact."""
Index("memory_oversized_idx", memory.c.tenant, memory.c.id, postgresql_where=IS_TO_COMPACT)
HAS_SEVERAL_SOURCES = memory.c.sources.op("->")(literal_column("1")).is_not(None)
"""The memories of which not every source is found by `memory_source_idx`."""
Index("memory_several_sources_idx", memory.c.tenant, postgresql_where=HAS_SEVERAL_SOURCES)
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
    # Why the caller deleted the memory, if it said so.
    Column("reason", Text, info=content()),
    UniqueConstraint("tenant", "agent_id", "user_id", "digest", postgresql_nulls_not_distinct=True),
)

Index(
    "memory_tombstone_user_idx",
    memory_tombstone.c.tenant,
    memory_tombstone.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=memory_tombstone.c.user_id.is_not(None),
)

# Memories stay when a session is deleted from which they come. If they are not of the session's user, only
# this row tells that an erasure of the user has to reach them.
deleted_source_session = Table(
    "deleted_source_session",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("user_id", Text, nullable=False, info=names(Subject.USER)),
    Column("session_id", Text, nullable=False, info=content()),
    Column("deleted_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "user_id", "session_id"),
)

Index(
    "deleted_source_session_user_idx",
    deleted_source_session.c.tenant,
    deleted_source_session.c.user_id,
    postgresql_ops=BY_CHARACTERS,
)
