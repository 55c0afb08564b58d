"""Create the knowledge graph: entities with their names, triples, sources, tombstones, changes by dreams."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKeyConstraint,
    Identity,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    TextClause,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from migrations import row_level_security

revision = "a021"
down_revision = "a020"
branch_labels = None
depends_on = None

_TABLES = ("graph_entity", "graph_name", "graph_triple", "graph_source", "graph_tombstone")
_DREAM_TABLES = ("dream_graph_change", "dream_extracted_memory")


def upgrade() -> None:
    """Apply this migration."""
    _create_entity()
    _create_name()
    _create_triple()
    _create_source()
    _create_tombstone()
    _create_dream_tables()
    for table in (*_TABLES, *_DREAM_TABLES):
        row_level_security.secure(table)


def downgrade() -> None:
    """Revert this migration."""
    for table in reversed((*_TABLES, *_DREAM_TABLES)):
        op.drop_table(table)


def _create_entity() -> None:
    op.create_table(
        "graph_entity",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("name", Text, nullable=False),
        Column("folded_name", Text, nullable=False),
        Column("type", Text, nullable=False),
        Column("aliases", ARRAY(Text), nullable=False),
        Column("metadata", JSONB, nullable=False),
        Column("is_derived", Boolean, nullable=False, server_default=text("false")),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("updated_at", DateTime(timezone=True)),
        Column("last_referenced_at", DateTime(timezone=True)),
        Column("expired_at", DateTime(timezone=True)),
        Column("reason", Text),
        Column("is_kept", Boolean, nullable=False, server_default=text("false")),
        PrimaryKeyConstraint("tenant", "id"),
        UniqueConstraint("tenant", "agent_id", "user_id", "folded_name", postgresql_nulls_not_distinct=True),
        CheckConstraint("type IN ('Person', 'Project', 'Topic', 'Tool', 'Event', 'Document')", name="type"),
    )
    op.create_index("graph_entity_newest_idx", "graph_entity", ["tenant", "agent_id", "id"])
    _index_user("graph_entity")
    _index_expired("graph_entity")


def _index_user(table: str) -> None:
    op.create_index(
        f"{table}_user_idx",
        table,
        ["tenant", "user_id"],
        postgresql_ops={"user_id": "text_pattern_ops"},
        postgresql_where=text("user_id IS NOT NULL"),
    )


def _index_expired(table: str) -> None:
    op.create_index(
        f"{table}_expired_idx",
        table,
        ["tenant", "expired_at"],
        postgresql_where=text("expired_at IS NOT NULL"),
    )


def _create_name() -> None:
    op.create_table(
        "graph_name",
        Column("tenant", Text, nullable=False),
        Column("entity_id", Text, nullable=False),
        Column("folded", Text, nullable=False),
        Column("key", Text),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        PrimaryKeyConstraint("tenant", "entity_id", "folded"),
        _names_entity("entity_id"),
    )
    op.create_index("graph_name_key_idx", "graph_name", ["tenant", "agent_id", "key"])
    op.create_index("graph_name_folded_idx", "graph_name", ["tenant", "agent_id", "folded"])


def _names_entity(column: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant", column], ["graph_entity.tenant", "graph_entity.id"], ondelete="CASCADE"
    )


def _create_triple() -> None:
    op.create_table(
        "graph_triple",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("subject_id", Text, nullable=False),
        Column("predicate", Text, nullable=False),
        Column("object_id", Text),
        Column("literal", Text),
        Column("object_key", Text, nullable=False),
        Column("fact", Text),
        Column("confidence", Double, nullable=False),
        Column("valid_at", DateTime(timezone=True)),
        Column("invalid_at", DateTime(timezone=True)),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("expired_at", DateTime(timezone=True)),
        Column("reason", Text),
        Column("previous_invalid_at", DateTime(timezone=True)),
        Column("is_derived", Boolean, nullable=False, server_default=text("false")),
        Column("is_kept", Boolean, nullable=False, server_default=text("false")),
        PrimaryKeyConstraint("tenant", "id"),
        _names_entity("subject_id"),
        _names_entity("object_id"),
        CheckConstraint("(object_id IS NULL) <> (literal IS NULL)", name="object"),
        CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
        CheckConstraint("valid_at <= invalid_at", name="validity"),
    )
    _create_triple_indexes()


def _create_triple_indexes() -> None:
    by_confidence: list[TextClause | str] = [text("confidence DESC"), "id"]
    op.create_index(
        "graph_triple_open_idx",
        "graph_triple",
        ["tenant", "subject_id", "predicate", "object_key", "agent_id", "user_id"],
        unique=True,
        postgresql_where=text("invalid_at IS NULL AND expired_at IS NULL"),
        postgresql_nulls_not_distinct=True,
    )
    op.create_index("graph_triple_subject_idx", "graph_triple", ["tenant", "subject_id", *by_confidence])
    op.create_index(
        "graph_triple_object_idx",
        "graph_triple",
        ["tenant", "object_id", *by_confidence],
        postgresql_where=text("object_id IS NOT NULL"),
    )
    op.create_index("graph_triple_newest_idx", "graph_triple", ["tenant", "agent_id", "id"])
    _index_user("graph_triple")
    _index_expired("graph_triple")


def _create_source() -> None:
    op.create_table(
        "graph_source",
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("tenant", Text, nullable=False),
        Column("entity_id", Text),
        Column("triple_id", Text),
        Column("session_id", Text),
        Column("seq", Integer),
        Column("memory_id", Text),
        _names_entity("entity_id"),
        ForeignKeyConstraint(
            ["tenant", "triple_id"], ["graph_triple.tenant", "graph_triple.id"], ondelete="CASCADE"
        ),
        CheckConstraint("(entity_id IS NULL) <> (triple_id IS NULL)", name="record"),
    )
    op.create_index(
        "graph_source_record_idx",
        "graph_source",
        ["tenant", "entity_id", "triple_id", "session_id", "seq", "memory_id"],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )
    op.create_index("graph_source_triple_idx", "graph_source", ["tenant", "triple_id"])
    op.create_index(
        "graph_source_session_idx",
        "graph_source",
        ["tenant", "session_id", "seq"],
        postgresql_where=text("session_id IS NOT NULL"),
    )
    op.create_index(
        "graph_source_memory_idx",
        "graph_source",
        ["tenant", "memory_id"],
        postgresql_where=text("memory_id IS NOT NULL"),
    )


def _create_tombstone() -> None:
    op.create_table(
        "graph_tombstone",
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("tenant", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("digest", LargeBinary, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        UniqueConstraint("tenant", "agent_id", "user_id", "digest", postgresql_nulls_not_distinct=True),
    )
    _index_user("graph_tombstone")


def _create_dream_tables() -> None:
    op.create_table(
        "dream_graph_change",
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("tenant", Text, nullable=False),
        Column("run_id", Text, nullable=False),
        Column("pass", Text, nullable=False),
        Column("action", Text, nullable=False),
        Column("record", Text, nullable=False),
        Column("record_id", Text, nullable=False),
        Column("reason", Text),
        Column("before", JSONB),
        Column("after", JSONB),
        ForeignKeyConstraint(["tenant", "run_id"], ["dream_run.tenant", "dream_run.id"], ondelete="CASCADE"),
    )
    op.create_index("dream_graph_change_run_idx", "dream_graph_change", ["tenant", "run_id", "id"])
    op.create_index("dream_graph_change_record_idx", "dream_graph_change", ["tenant", "record_id"])
    op.create_table(
        "dream_extracted_memory",
        Column("tenant", Text, nullable=False),
        Column("memory_id", Text, nullable=False),
        Column("content_version", BigInteger, nullable=False),
        PrimaryKeyConstraint("tenant", "memory_id"),
        ForeignKeyConstraint(["tenant", "memory_id"], ["memory.tenant", "memory.id"], ondelete="CASCADE"),
    )
