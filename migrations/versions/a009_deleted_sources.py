"""Create what tells whose the deleted sessions were from which memories of others come."""

from alembic import op
from sqlalchemy import Column, DateTime, PrimaryKeyConstraint, Text, text

from migrations import row_level_security

revision = "a009"
down_revision = "a008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.create_table(
        "deleted_source_session",
        Column("tenant", Text, nullable=False),
        Column("user_id", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("deleted_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "user_id", "session_id"),
    )
    op.create_index(
        "deleted_source_session_user_idx",
        "deleted_source_session",
        ["tenant", "user_id"],
        postgresql_ops={"user_id": "text_pattern_ops"},
    )
    row_level_security.secure("deleted_source_session")


def downgrade() -> None:
    """Revert this migration."""
    op.drop_table("deleted_source_session")
