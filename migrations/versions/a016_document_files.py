"""Create the files of documents: where each lies, and the parts of those that lie in Postgres."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    text,
)

from migrations import row_level_security

revision = "a016"
down_revision = "a015"
branch_labels = None
depends_on = None

_TABLES = ("document_file", "document_file_part")


def upgrade() -> None:
    """Apply this migration."""
    op.create_table(
        "document_file",
        Column("tenant", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("size_bytes", BigInteger, nullable=False),
        Column("is_in_s3", Boolean, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "name"),
    )
    op.create_table(
        "document_file_part",
        Column("tenant", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("position", Integer, nullable=False),
        Column("content", LargeBinary, nullable=False),
        PrimaryKeyConstraint("tenant", "name", "position"),
        ForeignKeyConstraint(
            ["tenant", "name"], ["document_file.tenant", "document_file.name"], ondelete="CASCADE"
        ),
    )
    # The parts are files that are compressed already, or are read once: compressing them is lost work.
    op.execute("ALTER TABLE document_file_part ALTER COLUMN content SET STORAGE EXTERNAL")
    for table in _TABLES:
        row_level_security.secure(table)


def downgrade() -> None:
    """Revert this migration."""
    for table in reversed(_TABLES):
        op.drop_table(table)
