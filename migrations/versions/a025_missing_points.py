"""Find the records whose points the index lacks."""

from alembic import op
from sqlalchemy import text

revision = "a025"
down_revision = "a024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.create_index(
        "job_missing_point_idx",
        "job",
        ["generation", "tenant"],
        postgresql_where=text("stage = 'index' AND (backfill OR last_error IS NOT NULL)"),
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_index("job_missing_point_idx", "job")
