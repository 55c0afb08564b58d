"""The trace that a work row continues, without any content."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this step."""
    op.add_column("work", sa.Column("traceparent", sa.Text(), nullable=True))


def downgrade() -> None:
    """Take this step back."""
    op.drop_column("work", "traceparent")
