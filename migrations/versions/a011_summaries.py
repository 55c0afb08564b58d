"""Create the summaries of sessions, and the index by which oversized memories are found."""

from alembic import op
from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Text,
    text,
)

from migrations import row_level_security

revision = "a011"
down_revision = "a010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    now = text("now()")
    op.create_table(
        "session_summary",
        Column("tenant", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("first_seq", Integer, nullable=False),
        Column("last_seq", Integer, nullable=False),
        Column("model", Text, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=now),
        Column("updated_at", DateTime(timezone=True), nullable=False, server_default=now),
        PrimaryKeyConstraint("tenant", "session_id"),
        ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
        CheckConstraint("1 <= first_seq AND first_seq <= last_seq", name="covered"),
    )
    row_level_security.secure("session_summary")
    op.create_index(
        "memory_oversized_idx",
        "memory",
        ["tenant", "id"],
        postgresql_where=text(
            "state = 'final' AND key IS NULL AND failure_reason IS NULL AND length(content) > 2000"
        ),
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_index("memory_oversized_idx", "memory")
    op.drop_table("session_summary")
