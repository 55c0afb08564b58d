"""Create what documents of several sources need, and what tells that a text is to be taken anew."""

from alembic import op
from sqlalchemy import ARRAY, Column, Text, text

revision = "a018"
down_revision = "a017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    none = text("'{}'")
    op.add_column("document", Column("other_sources", ARRAY(Text), nullable=False, server_default=none))
    op.add_column("document", Column("method", Text))
    op.create_check_constraint("other_sources", "document", "source IS NOT NULL OR other_sources = '{}'")
    op.create_index(
        "document_other_sources_idx",
        "document",
        ["tenant", "id"],
        postgresql_where=text("other_sources <> '{}'"),
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_index("document_other_sources_idx", "document")
    op.drop_constraint("other_sources", "document", type_="check")
    op.drop_column("document", "method")
    op.drop_column("document", "other_sources")
