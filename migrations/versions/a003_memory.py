"""Create long-term memories, their history, and the tombstones of memories that were deleted on purpose."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Column,
    Computed,
    DateTime,
    Double,
    Identity,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from migrations import row_level_security

revision = "a003"
down_revision = "a002"
branch_labels = None
depends_on = None

_TABLES = ("memory", "memory_history", "memory_tombstone")


def upgrade() -> None:
    """Apply this migration."""
    _create_memory()
    _create_memory_indexes()
    _create_history()
    _create_tombstone()
    for table in _TABLES:
        row_level_security.secure(table)


def downgrade() -> None:
    """Revert this migration."""
    for table in reversed(_TABLES):
        op.drop_table(table)


def _create_memory() -> None:
    op.create_table(
        "memory",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("content", Text, nullable=False),
        Column("category", Text),
        Column("tags", ARRAY(Text), nullable=False, server_default=text("'{}'")),
        Column("metadata", JSONB, nullable=False, server_default=text("'{}'")),
        Column("importance", Double, nullable=False, server_default=text("0.5")),
        Column("state", Text, nullable=False),
        Column("failure_reason", Text),
        Column("version", BigInteger, nullable=False, server_default=text("1")),
        Column("content_version", Integer, nullable=False, server_default=text("1")),
        Column("reinforcement_count", Integer, nullable=False, server_default=text("1")),
        Column("occurred_at", DateTime(timezone=True)),
        Column("sources", JSONB, nullable=False, server_default=text("'[]'")),
        Column("source_session_id", Text, Computed("sources -> 0 ->> 'session_id'", persisted=True)),
        Column("source_seq", Integer, Computed("(sources -> 0 ->> 'seq')::integer", persisted=True)),
        Column("superseded_by", ARRAY(Text), nullable=False, server_default=text("'{}'")),
        Column("derived_from", ARRAY(Text), nullable=False, server_default=text("'{}'")),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("updated_at", DateTime(timezone=True)),
        Column("last_seen_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("archived_at", DateTime(timezone=True)),
        Column("archive_reason", Text),
        Column("fingerprint", LargeBinary, nullable=False),
        Column("search_terms", TSVECTOR, nullable=False),
        PrimaryKeyConstraint("tenant", "id"),
    )


def _create_memory_indexes() -> None:
    # A scope has no two memories of the same fact, unless they are archived.
    op.create_index(
        "memory_live_fingerprint_idx",
        "memory",
        ["tenant", "agent_id", "user_id", "fingerprint"],
        unique=True,
        postgresql_where=text("archived_at IS NULL"),
        postgresql_nulls_not_distinct=True,
    )
    op.create_index("memory_newest_idx", "memory", ["tenant", "agent_id", text("last_seen_at DESC"), "id"])
    op.create_index(
        "memory_source_idx",
        "memory",
        ["tenant", "source_session_id", "source_seq"],
        postgresql_where=text("source_session_id IS NOT NULL"),
    )
    op.create_index("memory_search_terms_idx", "memory", ["search_terms"], postgresql_using="gin")
    op.create_index("memory_derived_from_idx", "memory", ["derived_from"], postgresql_using="gin")
    archived = text("archived_at IS NOT NULL")
    op.create_index("memory_archived_idx", "memory", ["archived_at"], postgresql_where=archived)


def _create_history() -> None:
    op.create_table(
        "memory_history",
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("tenant", Text, nullable=False),
        Column("memory_id", Text, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("actor", Text, nullable=False),
        Column("action", Text, nullable=False),
        Column("reason", Text),
        Column("before", JSONB),
        Column("after", JSONB),
    )
    op.create_index("memory_history_memory_idx", "memory_history", ["tenant", "memory_id", "id"])


def _create_tombstone() -> None:
    op.create_table(
        "memory_tombstone",
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("tenant", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("digest", LargeBinary, nullable=False),
        Column("memory_id", Text, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        UniqueConstraint("tenant", "agent_id", "user_id", "digest", postgresql_nulls_not_distinct=True),
    )
