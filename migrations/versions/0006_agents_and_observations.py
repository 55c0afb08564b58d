"""Agent roots, and the observations attached to sessions."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations import row_level_security

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TABLES = ("agent", "agent_text", "agent_file", "observation")


def upgrade() -> None:
    """Apply this step."""
    _create_agents()
    _create_observations()
    for table in _TABLES:
        row_level_security.secure(table)
        row_level_security.open_to_role(table)


def _create_agents() -> None:
    op.create_table(
        "agent",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=True),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("identity", sa.Text(), nullable=True),
        sa.Column("store_types", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("agent_pkey")),
    )
    op.create_table(
        "agent_text",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "agent_id"],
            ["agent.tenant", "agent.id"],
            name=op.f("agent_text_tenant_agent_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("agent_text_pkey")),
    )
    op.create_index(
        "agent_text_order_idx", "agent_text", ["tenant", "agent_id", "created_at", "id"], unique=False
    )
    op.create_table(
        "agent_file",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "agent_id"],
            ["agent.tenant", "agent.id"],
            name=op.f("agent_file_tenant_agent_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "agent_id", "name", name=op.f("agent_file_pkey")),
    )


def _create_observations() -> None:
    op.create_table(
        "observation",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("tags", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("words", postgresql.TSVECTOR(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "session_id"],
            ["session.tenant", "session.id"],
            name=op.f("observation_tenant_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("observation_pkey")),
    )
    op.create_index(
        "observation_session_idx",
        "observation",
        ["tenant", "session_id", sa.literal_column("created_at DESC"), "id"],
        unique=False,
    )
    op.create_index("observation_words_idx", "observation", ["words"], unique=False, postgresql_using="gin")


def downgrade() -> None:
    """Take this step back."""
    op.drop_index("observation_words_idx", table_name="observation", postgresql_using="gin")
    op.drop_index("observation_session_idx", table_name="observation")
    op.drop_table("observation")
    op.drop_table("agent_file")
    op.drop_index("agent_text_order_idx", table_name="agent_text")
    op.drop_table("agent_text")
    op.drop_table("agent")
