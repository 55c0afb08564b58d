"""Let workers write the summaries of skills that came without one."""

from alembic import op
from sqlalchemy import BigInteger, Column, text

revision = "a023"
down_revision = "a022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.add_column("skill", Column("unsummarised_version", BigInteger))
    op.create_index(
        "skill_summary_idx",
        "skill",
        ["tenant", "id"],
        postgresql_where=text("summary_origin = 'content'"),
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_index("skill_summary_idx", "skill")
    op.drop_column("skill", "unsummarised_version")
