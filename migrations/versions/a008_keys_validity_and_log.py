"""Add keys, validity and expiry to memories, items to turns, metadata to sessions, and pinned texts."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Integer,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from migrations import row_level_security

revision = "a008"
down_revision = "a007"
branch_labels = None
depends_on = None

_IS_LIVE = "archived_at IS NULL"
_IS_DEDUPLICATED = f"{_IS_LIVE} AND key IS NULL AND valid_until IS NULL"
# Of ids in the order of their characters, whatever the collation of the database.
_PATTERN = {"user_id": "text_pattern_ops"}
# For listing users and agents, and for erasing them: name, table and columns.
_SUBJECT_INDEXES = [
    ("memory_user_idx", "memory", ["tenant", "user_id", "last_seen_at"]),
    ("memory_agent_user_idx", "memory", ["tenant", "agent_id", "user_id"]),
    ("session_user_idx", "session", ["tenant", "user_id", "created_at"]),
    ("session_agent_user_idx", "session", ["tenant", "agent_id", "user_id"]),
    ("session_agent_idx", "session", ["tenant", "agent_id", "created_at"]),
    ("dream_run_user_idx", "dream_run", ["tenant", "user_id"]),
    ("dream_run_agent_idx", "dream_run", ["tenant", "agent_id"]),
    ("memory_tombstone_user_idx", "memory_tombstone", ["tenant", "user_id"]),
    ("pinned_text_user_idx", "pinned_text", ["tenant", "user_id"]),
    ("working_namespace_agent_idx", "working_namespace", ["tenant", "agent_id"]),
]
_FINGERPRINT = ["tenant", "agent_id", "user_id", "fingerprint"]


def upgrade() -> None:
    """Apply this migration."""
    _add_memory_columns()
    _replace_fingerprint_index(_IS_DEDUPLICATED)
    _create_memory_indexes()
    op.add_column("turn", Column("item", Text))
    op.add_column("turn", Column("edited_at", DateTime(timezone=True)))
    _add_log_columns()
    op.add_column("session", Column("metadata", JSONB, nullable=False, server_default=text("'{}'")))
    op.add_column("session", Column("window_start", Integer, nullable=False, server_default=text("0")))
    op.add_column("agent", Column("context_options", JSONB))
    _add_owner_digests()
    _create_pinned_text()
    row_level_security.secure("pinned_text")
    _replace_user_indexes(_PATTERN)
    _create_subject_indexes()


def downgrade() -> None:
    """Revert this migration. It fails if two memories say the same, which only the later schema allows."""
    for name, table, _ in _SUBJECT_INDEXES:
        op.drop_index(name, table)
    _replace_user_indexes({})
    op.drop_table("pinned_text")
    op.drop_column("erasure", "owner_digests")
    op.drop_column("agent", "context_options")
    for column in ("previous_seq", "seq", "first_seq"):
        op.drop_column("feedback_signal", column)
    for column in ("log_revision", "turn_count", "window_start", "metadata"):
        op.drop_column("session", column)
    for column in ("edited_at", "item"):
        op.drop_column("turn", column)
    _replace_fingerprint_index(_IS_LIVE)
    op.drop_index("memory_several_sources_idx", "memory")
    validity = ("expires_at", "valid_until", "valid_from")
    for column in ("archived_by", "saved_without_source", *validity, "key", "namespace"):
        op.drop_column("memory", column)
    op.drop_column("memory_tombstone", "reason")


def _add_memory_columns() -> None:
    columns: list[Column[object]] = [
        Column("namespace", Text, nullable=False, server_default=text("''")),
        Column("key", Text),
        Column("valid_from", DateTime(timezone=True)),
        Column("valid_until", DateTime(timezone=True)),
        Column("expires_at", DateTime(timezone=True)),
        Column("archived_by", Text),
        Column("saved_without_source", Boolean, nullable=False, server_default=text("false")),
    ]
    for column in columns:
        op.add_column("memory", column)
    op.create_check_constraint("namespace", "memory", "namespace = '' OR key IS NOT NULL")
    op.create_check_constraint("validity", "memory", "valid_from <= valid_until")
    op.create_check_constraint("as_written", "memory", "key IS NULL OR state <> 'pending'")
    op.create_check_constraint("archived_by", "memory", "archived_by IS NULL OR archived_at IS NOT NULL")
    op.add_column("memory_tombstone", Column("reason", Text))


def _add_log_columns() -> None:
    """Add what says which turns a session holds, and which turns a feedback signal was derived from."""
    now = text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    op.add_column("session", Column("turn_count", Integer, nullable=False, server_default=text("0")))
    op.add_column("session", Column("log_revision", BigInteger, nullable=False, server_default=now))
    # Row-level security would hide the rows from their owner, too.
    for table in ("session", "turn"):
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    op.execute(
        "UPDATE session s SET turn_count = "
        "(SELECT count(*) FROM turn t WHERE t.tenant = s.tenant AND t.session_id = s.id)"
    )
    for table in ("session", "turn"):
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    for column in ("first_seq", "seq", "previous_seq"):
        op.add_column("feedback_signal", Column(column, Integer))


def _replace_fingerprint_index(condition: str) -> None:
    op.drop_index("memory_live_fingerprint_idx", "memory")
    op.create_index(
        "memory_live_fingerprint_idx",
        "memory",
        _FINGERPRINT,
        unique=True,
        postgresql_where=text(condition),
        postgresql_nulls_not_distinct=True,
    )


def _create_memory_indexes() -> None:
    op.create_index(
        "memory_live_key_idx",
        "memory",
        ["tenant", "agent_id", "user_id", "namespace", "key"],
        unique=True,
        postgresql_where=text(f"{_IS_LIVE} AND key IS NOT NULL"),
        postgresql_nulls_not_distinct=True,
    )
    several_sources = text("(sources -> 1) IS NOT NULL")
    op.create_index("memory_several_sources_idx", "memory", ["tenant"], postgresql_where=several_sources)
    expires = text("expires_at IS NOT NULL")
    op.create_index("memory_expiry_idx", "memory", ["expires_at"], postgresql_where=expires)


def _add_owner_digests() -> None:
    none = text("'{}'")
    op.add_column("erasure", Column("owner_digests", ARRAY(Text), nullable=False, server_default=none))


def _replace_user_indexes(ops: dict[str, str]) -> None:
    has_user = text("user_id IS NOT NULL")
    op.drop_index("charge_user_idx", "charge")
    op.create_index(
        "charge_user_idx", "charge", ["tenant", "user_id"], postgresql_where=has_user, postgresql_ops=ops
    )
    op.drop_index("working_namespace_user_idx", "working_namespace")
    op.create_index(
        "working_namespace_user_idx", "working_namespace", ["tenant", "user_id"], postgresql_ops=ops
    )


def _create_subject_indexes() -> None:
    for name, table, columns in _SUBJECT_INDEXES:
        has_user = text("user_id IS NOT NULL") if "user_id" in columns else None
        ops = _PATTERN if "user_id" in columns else {}
        op.create_index(name, table, columns, postgresql_where=has_user, postgresql_ops=ops)


def _create_pinned_text() -> None:
    op.create_table(
        "pinned_text",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("name", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("updated_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "id"),
        UniqueConstraint("tenant", "agent_id", "user_id", "name", postgresql_nulls_not_distinct=True),
        CheckConstraint("char_length(content) <= 4000", name="content_length"),
    )
