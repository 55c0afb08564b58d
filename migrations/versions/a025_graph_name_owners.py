"""Find the names of entities by their owner: those of other users, and all beyond a limit, are not read."""

from alembic import op

revision = "a025"
down_revision = "a024"
branch_labels = None
depends_on = None

_NAMES = ["tenant", "agent_id", "key"]


def upgrade() -> None:
    """Apply this migration."""
    op.drop_index("graph_name_key_idx", "graph_name")
    op.create_index("graph_name_key_idx", "graph_name", [*_NAMES, "user_id", "entity_id"])


def downgrade() -> None:
    """Revert this migration."""
    op.drop_index("graph_name_key_idx", "graph_name")
    op.create_index("graph_name_key_idx", "graph_name", _NAMES)
