"""Create the scratchpads of sessions, their promotions, and the business context of tenants."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from migrations import row_level_security

revision = "a012"
down_revision = "a011"
branch_labels = None
depends_on = None

_TABLES = ("scratchpad_snippet", "promotion", "business_context_part")


def upgrade() -> None:
    """Apply this migration."""
    _create_scratchpad_snippet()
    _create_promotion()
    _create_business_context_part()
    for table in _TABLES:
        row_level_security.secure(table)


def downgrade() -> None:
    """Revert this migration."""
    for table in reversed(_TABLES):
        op.drop_table(table)


def _of_session() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"
    )


def _create_scratchpad_snippet() -> None:
    op.create_table(
        "scratchpad_snippet",
        Column("tenant", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("slot", Integer, nullable=False),
        Column("id", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("count", Integer, nullable=False, server_default=text("1")),
        Column("promoted_at", DateTime(timezone=True)),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("updated_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column(
            "revision",
            BigInteger,
            nullable=False,
            server_default=text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"),
        ),
        PrimaryKeyConstraint("tenant", "session_id", "slot"),
        CheckConstraint("slot BETWEEN 1 AND 64", name="slot"),
        CheckConstraint("count >= 1", name="count"),
        _of_session(),
    )


def _create_promotion() -> None:
    op.create_table(
        "promotion",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("actor", Text, nullable=False),
        Column("trigger", Text, nullable=False),
        Column("target", Text, nullable=False),
        Column("reason", Text),
        Column("report_id", Text),
        Column("state", Text, nullable=False),
        Column("results", JSONB, nullable=False, server_default=text("'[]'")),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("finished_at", DateTime(timezone=True)),
        PrimaryKeyConstraint("tenant", "id"),
        _of_session(),
    )
    op.create_index("promotion_session_idx", "promotion", ["tenant", "session_id", text("created_at DESC")])


def _create_business_context_part() -> None:
    op.create_table(
        "business_context_part",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("position", Integer, nullable=False),
        Column("content", Text, nullable=False),
        Column("agent_id", Text),
        Column("user_id", Text),
        Column("session_id", Text),
        Column("snippet_id", Text),
        Column("reason", Text),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "id"),
        CheckConstraint("(agent_id IS NULL) = (snippet_id IS NULL)", name="provenance"),
    )
    op.create_index(
        "business_context_part_user_idx",
        "business_context_part",
        ["tenant", "user_id"],
        postgresql_ops={"user_id": "text_pattern_ops"},
        postgresql_where=text("user_id IS NOT NULL"),
    )
    op.create_index("business_context_part_agent_idx", "business_context_part", ["tenant", "agent_id"])
