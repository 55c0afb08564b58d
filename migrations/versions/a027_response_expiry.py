"""Say of a stored response when the first of what it shows from outside Postgres expires."""

from alembic import op
from sqlalchemy import Column, DateTime

revision = "a027"
down_revision = "a026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.add_column("idempotent_response", Column("expires_at", DateTime(timezone=True)))


def downgrade() -> None:
    """Revert this migration."""
    op.drop_column("idempotent_response", "expires_at")
