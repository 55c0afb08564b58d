"""Find triples that are over, names that begin alike, and entities that no dream has reviewed."""

from alembic import op
from sqlalchemy import Column, DateTime, text

revision = "a024"
down_revision = "a023"
branch_labels = None
depends_on = None

_NAMES = ["tenant", "agent_id", "folded"]


def upgrade() -> None:
    """Apply this migration."""
    op.add_column("graph_entity", Column("reviewed_at", DateTime(timezone=True)))
    op.create_index(
        "graph_triple_over_idx",
        "graph_triple",
        ["tenant", "subject_id", "predicate", "object_key"],
        postgresql_where=text("NOT (invalid_at IS NULL AND expired_at IS NULL)"),
    )
    op.drop_index("graph_name_folded_idx", "graph_name")
    op.create_index(
        "graph_name_folded_idx", "graph_name", _NAMES, postgresql_ops={"folded": "text_pattern_ops"}
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_index("graph_name_folded_idx", "graph_name")
    op.create_index("graph_name_folded_idx", "graph_name", _NAMES)
    op.drop_index("graph_triple_over_idx", "graph_triple")
    op.drop_column("graph_entity", "reviewed_at")
