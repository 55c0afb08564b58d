"""Keep parsed text until its chunks are stored, and let chunks be deleted after their document."""

from alembic import op
from sqlalchemy import Column, ForeignKeyConstraint, Integer, PrimaryKeyConstraint, Text, text

from migrations import row_level_security

revision = "a022"
down_revision = "a021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.create_table(
        "parsed_chunk",
        Column("tenant", Text, nullable=False),
        Column("document_id", Text, nullable=False),
        Column("version", Integer, nullable=False),
        Column("position", Integer, nullable=False),
        Column("content", Text, nullable=False),
        Column("page", Integer),
        Column("line_from", Integer),
        Column("line_to", Integer),
        PrimaryKeyConstraint("tenant", "document_id", "version", "position"),
        ForeignKeyConstraint(
            ["tenant", "document_id"], ["document.tenant", "document.id"], ondelete="CASCADE"
        ),
    )
    row_level_security.secure("parsed_chunk")
    op.drop_constraint("document_chunk_tenant_document_id_fkey", "document_chunk", type_="foreignkey")
    op.add_column("document", Column("former_source", Text))
    op.create_index(
        "document_former_source_idx",
        "document",
        ["tenant", "former_source"],
        postgresql_where=text("former_source IS NOT NULL"),
    )


def downgrade() -> None:
    """Revert this migration. Of documents that are being deleted, the chunks go at once."""
    op.drop_index("document_former_source_idx", "document")
    op.drop_column("document", "former_source")
    _delete_chunks_without_document()
    op.create_foreign_key(
        None, "document_chunk", "document", ["tenant", "document_id"], ["tenant", "id"], ondelete="CASCADE"
    )
    op.drop_table("parsed_chunk")


def _delete_chunks_without_document() -> None:
    for table in ("document", "document_chunk"):  # of all tenants
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
    op.execute(
        "DELETE FROM document_chunk c WHERE NOT EXISTS "
        "(SELECT FROM document d WHERE d.tenant = c.tenant AND d.id = c.document_id)"
    )
    for table in ("document", "document_chunk"):
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
