"""Feedback signals, and the directives that tenants set for themselves."""

import sqlalchemy as sa
from alembic import op

from migrations import row_level_security

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TABLES = ("signal", "directive")


def upgrade() -> None:
    """Apply this step."""
    _create_tables()
    for table in _TABLES:
        row_level_security.secure(table)
        row_level_security.open_to_role(table)


def _create_tables() -> None:
    op.create_table(
        "directive",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", "version", name=op.f("directive_pkey")),
    )
    op.create_table(
        "signal",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant", "session_id"],
            ["session.tenant", "session.id"],
            name=op.f("signal_tenant_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("signal_pkey")),
    )
    op.create_index(
        "signal_scope_idx",
        "signal",
        ["tenant", "agent_id", "user_id", sa.literal_column("created_at DESC")],
        unique=False,
    )
    op.create_index(
        "signal_newest_idx", "signal", ["tenant", sa.literal_column("created_at DESC"), "id"], unique=False
    )
    op.create_index("signal_session_idx", "signal", ["tenant", "session_id"], unique=False)


def downgrade() -> None:
    """Take this step back."""
    for table in _TABLES:
        op.drop_table(table)
