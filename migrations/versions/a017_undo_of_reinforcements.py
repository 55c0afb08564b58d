"""Create what the undo of a reinforcement needs: the sources that a dream run has added to a memory."""

from alembic import op
from sqlalchemy import Column, text
from sqlalchemy.dialects.postgresql import JSONB

revision = "a017"
down_revision = "a016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.add_column("dream_change", Column("added_sources", JSONB))
    op.create_index(
        "dream_change_added_sources_idx",
        "dream_change",
        ["tenant", "entry_id"],
        postgresql_where=text("added_sources IS NOT NULL"),
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_index("dream_change_added_sources_idx", "dream_change")
    op.drop_column("dream_change", "added_sources")
