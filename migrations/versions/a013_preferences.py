"""Create the preferences of users."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from migrations import row_level_security

revision = "a013"
down_revision = "a012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    _create_preference()
    _create_indexes()
    row_level_security.secure("preference")


def downgrade() -> None:
    """Revert this migration, with the jobs and the index of a kind that earlier versions don't know."""
    op.execute("SELECT set_config('loci.tenant', '*', true)")
    op.execute("DELETE FROM job WHERE kind = 'preference'")
    op.execute("DELETE FROM index_generation WHERE kind = 'preference'")
    op.drop_table("preference")


def _create_preference() -> None:
    op.create_table(
        "preference",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("key", Text, nullable=False),
        Column("flow", Text),
        Column("description", Text),
        Column("slot", Text),
        Column("value", JSONB),
        Column("template", Text),
        Column("related", ARRAY(Text), nullable=False),
        Column("origin", Text, nullable=False),
        Column("memory_id", Text),
        Column("requires_user_permission", Boolean, nullable=False, server_default=text("false")),
        Column("permission_granted_at", DateTime(timezone=True)),
        Column("version", BigInteger, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column(
            "updated_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")
        ),
        Column("search_terms", TSVECTOR, nullable=False),
        PrimaryKeyConstraint("tenant", "id"),
        UniqueConstraint("tenant", "agent_id", "user_id", "key", postgresql_nulls_not_distinct=True),
        CheckConstraint("flow IS NOT NULL OR description IS NOT NULL", name="condition"),
        CheckConstraint("slot IS NOT NULL OR template IS NOT NULL", name="effect"),
        CheckConstraint("(slot IS NULL) = (value IS NULL)", name="slot"),
    )


def _create_indexes() -> None:
    op.create_index("preference_flow_idx", "preference", ["tenant", "agent_id", "flow"])
    op.create_index(
        "preference_user_idx",
        "preference",
        ["tenant", "user_id"],
        postgresql_ops={"user_id": "text_pattern_ops"},
        postgresql_where=text("user_id IS NOT NULL"),
    )
    op.create_index(
        "preference_memory_idx",
        "preference",
        ["tenant", "memory_id"],
        postgresql_where=text("memory_id IS NOT NULL"),
    )
    op.create_index("preference_search_terms_idx", "preference", ["search_terms"], postgresql_using="gin")
