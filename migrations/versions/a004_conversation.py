"""Create sessions and what belongs to them.

These are owners of working-memory namespaces, turns, recalled memories, feedback, observations and state.

State stores also belong to agents. A store's `session_id` repeats its owner where the owner is a
session, so that everything of a session is deleted together with it.
"""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Computed,
    DateTime,
    Float,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    Numeric,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from migrations import row_level_security

revision = "a004"
down_revision = "a003"
branch_labels = None
depends_on = None

_TABLES = (
    "session",
    "working_namespace",
    "turn",
    "recalled_memory",
    "feedback_signal",
    "observation",
    "state_store",
    "state_key",
    "transcript_entry",
    "state_collection",
)


def upgrade() -> None:
    """Apply this migration."""
    _create_session()
    _create_session_indexes()
    _create_working_namespace()
    _create_turn()
    _create_recalled_memory()
    _create_feedback_signal()
    _create_observation()
    _create_state_store()
    _create_state_key()
    _create_transcript_entry()
    _create_state_collection()
    for table in _TABLES:
        row_level_security.secure(table)


def downgrade() -> None:
    """Revert this migration."""
    for table in reversed(_TABLES):
        op.drop_table(table)


def _deleted_with_session() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"
    )


def _deleted_with_store() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant", "owner_kind", "owner_id"],
        ["state_store.tenant", "state_store.owner_kind", "state_store.owner_id"],
        ondelete="CASCADE",
    )


def _create_session() -> None:
    op.create_table(
        "session",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("kind", Text, nullable=False),
        Column("name", Text),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("namespace", Text, nullable=False),
        Column("store_types", ARRAY(Text), nullable=False),
        Column("last_agent", Text),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("ttl_seconds", Integer),
        Column("expires_at", DateTime(timezone=True)),
        Column("last_seq", Integer, nullable=False, server_default=text("0")),
        Column("last_turn_at", DateTime(timezone=True)),
        Column("total_input_tokens", BigInteger, nullable=False, server_default=text("0")),
        Column("total_output_tokens", BigInteger, nullable=False, server_default=text("0")),
        Column("total_cached_tokens", BigInteger, nullable=False, server_default=text("0")),
        Column("total_cost_usd", Numeric),
        Column("unpriced_charges", Integer, nullable=False, server_default=text("0")),
        Column("spend_updated_at", DateTime(timezone=True)),
        Column("folded_id", Text, nullable=False),
        PrimaryKeyConstraint("tenant", "id"),
        UniqueConstraint("tenant", "folded_id"),
    )


def _create_session_indexes() -> None:
    op.create_index("session_newest_idx", "session", ["tenant", text("created_at DESC"), "id"])
    op.create_index("session_namespace_idx", "session", ["tenant", text("lower(namespace)")])
    expires = text("expires_at IS NOT NULL")
    op.create_index("session_expiry_idx", "session", ["expires_at"], postgresql_where=expires)


def _create_working_namespace() -> None:
    op.create_table(
        "working_namespace",
        Column("tenant", Text, nullable=False),
        Column("namespace", Text, nullable=False),
        Column("agent_id", Text),
        Column("user_id", Text),
        Column("session_id", Text),
        Column("opened_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "namespace"),
        ForeignKeyConstraint(
            ["tenant", "session_id"],
            ["session.tenant", "session.id"],
            ondelete="SET NULL (session_id)",
        ),
    )
    op.create_index("working_namespace_session_idx", "working_namespace", ["tenant", "session_id"])
    op.create_index("working_namespace_user_idx", "working_namespace", ["tenant", "user_id"])


def _create_turn() -> None:
    op.create_table(
        "turn",
        Column("tenant", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("seq", Integer, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("role", Text, nullable=False),
        Column("speaker", Text),
        Column("content", Text, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("received_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("metadata", JSONB, nullable=False, server_default=text("'{}'")),
        Column("recalled_lines", JSONB, nullable=False, server_default=text("'[]'")),
        Column("recalled_ids", ARRAY(Text), nullable=False, server_default=text("'{}'")),
        Column("search_terms", TSVECTOR, nullable=False),
        Column(
            "version",
            BigInteger,
            nullable=False,
            server_default=text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"),
        ),
        PrimaryKeyConstraint("tenant", "session_id", "seq"),
        _deleted_with_session(),
    )
    op.create_index("turn_search_terms_idx", "turn", ["search_terms"], postgresql_using="gin")
    op.create_index("turn_recalled_ids_idx", "turn", ["recalled_ids"], postgresql_using="gin")
    op.create_index("turn_received_idx", "turn", ["received_at"])


def _create_recalled_memory() -> None:
    op.create_table(
        "recalled_memory",
        Column("tenant", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("memory_id", Text, nullable=False),
        Column("content_version", Integer, nullable=False),
        Column("seq", Integer, nullable=False),
        PrimaryKeyConstraint("tenant", "session_id", "memory_id"),
        _deleted_with_session(),
    )


def _create_feedback_signal() -> None:
    op.create_table(
        "feedback_signal",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("type", Text, nullable=False),
        Column("summary", Text, nullable=False),
        Column("detail", Text),
        Column("likelihood", Float),
        Column("previous", Text),
        # clock_timestamp() instead of now(), so that signals of one transaction keep their order.
        Column(
            "created_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")
        ),
        PrimaryKeyConstraint("tenant", "id"),
        _deleted_with_session(),
    )
    op.create_index(
        "feedback_signal_scope_idx",
        "feedback_signal",
        ["tenant", "agent_id", "user_id", text("created_at DESC")],
    )
    op.create_index(
        "feedback_signal_newest_idx", "feedback_signal", ["tenant", text("created_at DESC"), "id"]
    )
    op.create_index("feedback_signal_session_idx", "feedback_signal", ["tenant", "session_id"])


def _create_observation() -> None:
    op.create_table(
        "observation",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("kind", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("data", JSONB),
        Column("tags", ARRAY(Text), nullable=False),
        Column("metadata", JSONB, nullable=False),
        Column("observed_at", DateTime(timezone=True)),
        # clock_timestamp() instead of now(), so that observations of one transaction keep their order.
        Column(
            "created_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")
        ),
        Column("search_terms", TSVECTOR, nullable=False),
        PrimaryKeyConstraint("tenant", "id"),
        _deleted_with_session(),
    )
    op.create_index(
        "observation_session_idx", "observation", ["tenant", "session_id", text("created_at DESC"), "id"]
    )
    op.create_index("observation_search_terms_idx", "observation", ["search_terms"], postgresql_using="gin")


def _create_state_store() -> None:
    owner_session = "CASE WHEN owner_kind = 'session' THEN owner_id END"
    op.create_table(
        "state_store",
        Column("tenant", Text, nullable=False),
        Column("owner_kind", Text, nullable=False),
        Column("owner_id", Text, nullable=False),
        Column("session_id", Text, Computed(owner_session, persisted=True)),
        Column("version", BigInteger, nullable=False),
        PrimaryKeyConstraint("tenant", "owner_kind", "owner_id"),
        _deleted_with_session(),
    )
    op.create_index("state_store_session_idx", "state_store", ["tenant", "session_id"])


def _create_state_key() -> None:
    op.create_table(
        "state_key",
        Column("tenant", Text, nullable=False),
        Column("owner_kind", Text, nullable=False),
        Column("owner_id", Text, nullable=False),
        Column("key", Text, nullable=False),
        # JSON as text: jsonb would lose the sign of a zero.
        Column("value", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        PrimaryKeyConstraint("tenant", "owner_kind", "owner_id", "key"),
        _deleted_with_store(),
    )
    op.create_index("state_key_order_idx", "state_key", ["tenant", "owner_kind", "owner_id", "version"])


def _create_transcript_entry() -> None:
    op.create_table(
        "transcript_entry",
        Column("tenant", Text, nullable=False),
        Column("owner_kind", Text, nullable=False),
        Column("owner_id", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("role", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("metadata", JSONB, nullable=False),
        PrimaryKeyConstraint("tenant", "owner_kind", "owner_id", "version"),
        _deleted_with_store(),
    )


def _create_state_collection() -> None:
    op.create_table(
        "state_collection",
        Column("tenant", Text, nullable=False),
        Column("owner_kind", Text, nullable=False),
        Column("owner_id", Text, nullable=False),
        Column("label", Text, nullable=False),
        Column("type", Text, nullable=False),
        Column("index", Boolean, nullable=False),
        # JSON as text; bytes are in `data`.
        Column("value", Text, nullable=False),
        Column("data", LargeBinary),
        Column("size_bytes", Integer, nullable=False),
        Column("version", BigInteger, nullable=False),
        PrimaryKeyConstraint("tenant", "owner_kind", "owner_id", "label"),
        _deleted_with_store(),
    )
