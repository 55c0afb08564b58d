"""Create the documents of tenants and their chunks."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR

from migrations import row_level_security

revision = "a015"
down_revision = "a014"
branch_labels = None
depends_on = None

_TABLES = ("document", "document_chunk")


def upgrade() -> None:
    """Apply this migration."""
    _create_document()
    _create_document_chunk()
    for table in _TABLES:
        row_level_security.secure(table)


def downgrade() -> None:
    """Revert this migration."""
    for table in reversed(_TABLES):
        op.drop_table(table)


def _create_document() -> None:
    now = text("clock_timestamp()")
    op.create_table(
        "document",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("title", Text),
        Column("parsed_title", Text),
        Column("source", Text),
        Column("file_name", Text, nullable=False),
        Column("declared_type", Text),
        Column("media_type", Text),
        Column("size_bytes", BigInteger, nullable=False),
        Column("sha256", Text, nullable=False),
        Column("file_id", Text, nullable=False),
        Column("version", Integer, nullable=False, server_default=text("1")),
        Column("searchable_version", Integer),
        Column("state", Text, nullable=False),
        Column("reason_code", Text),
        Column("reason", Text),
        Column("chunk_count", Integer),
        Column("stored_chunks", Integer, nullable=False, server_default=text("0")),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=now),
        Column("updated_at", DateTime(timezone=True), nullable=False, server_default=now),
        PrimaryKeyConstraint("tenant", "id"),
        CheckConstraint("searchable_version <= version", name="searchable_version"),
        CheckConstraint("state <> 'ready' OR searchable_version = version", name="ready"),
        CheckConstraint("state <> 'failed' OR reason_code IS NOT NULL", name="failed"),
    )
    op.create_index(
        "document_source_idx",
        "document",
        ["tenant", "source"],
        unique=True,
        postgresql_where=text("source IS NOT NULL"),
    )
    op.create_index("document_sha256_idx", "document", ["tenant", "sha256"])
    op.create_index("document_newest_idx", "document", ["tenant", text("created_at DESC"), "id"])


def _create_document_chunk() -> None:
    op.create_table(
        "document_chunk",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("document_id", Text, nullable=False),
        Column("version", Integer, nullable=False),
        Column("position", Integer, nullable=False),
        Column("content", Text, nullable=False),
        Column("page", Integer),
        Column("line_from", Integer),
        Column("line_to", Integer),
        Column("search_terms", TSVECTOR, nullable=False),
        PrimaryKeyConstraint("tenant", "id"),
        ForeignKeyConstraint(
            ["tenant", "document_id"], ["document.tenant", "document.id"], ondelete="CASCADE"
        ),
    )
    position = ["tenant", "document_id", "version", "position"]
    op.create_index("document_chunk_position_idx", "document_chunk", position, unique=True)
    op.create_index(
        "document_chunk_search_terms_idx", "document_chunk", ["search_terms"], postgresql_using="gin"
    )
