"""Create what mining facts out of conversations needs: switches of agents, and the undo of closings."""

from alembic import op
from sqlalchemy import Boolean, Column, DateTime, text

revision = "a010"
down_revision = "a009"
branch_labels = None
depends_on = None
_SENT = "(lease_token IS NOT NULL OR sent_at IS NOT NULL)"


def upgrade() -> None:
    """Apply this migration."""
    op.add_column("agent", Column("mine_facts", Boolean, nullable=False, server_default=text("true")))
    op.add_column("agent", Column("mine_common", Boolean, nullable=False, server_default=text("false")))
    op.add_column("dream_change", Column("previous_valid_until", DateTime(timezone=True)))
    _create_sent_index(f"stage IN ('dream_pass', 'mine_pass') AND {_SENT}")


def downgrade() -> None:
    """Revert this migration."""
    _create_sent_index(f"stage = 'dream_pass' AND {_SENT}")
    op.drop_column("dream_change", "previous_valid_until")
    op.drop_column("agent", "mine_common")
    op.drop_column("agent", "mine_facts")


def _create_sent_index(condition: str) -> None:
    op.drop_index("job_sent_idx", "job")
    op.create_index("job_sent_idx", "job", ["stage"], postgresql_where=text(condition))
