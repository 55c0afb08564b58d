"""Create the receipts of erasures, and what deletions have still to remove from Redis and Qdrant."""

from alembic import op
from sqlalchemy import (
    Column,
    DateTime,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from migrations import row_level_security

revision = "a007"
down_revision = "a006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    _create_removal()
    _create_erasure()
    for table in ("removal", "erasure"):
        row_level_security.secure(table)
    _add_record_ids()


def downgrade() -> None:
    """Revert this migration."""
    op.drop_index("dream_pass_record_ids_idx", "dream_pass")
    op.drop_column("dream_pass", "record_ids")
    for table in ("erasure", "removal"):
        op.drop_table(table)


def _create_removal() -> None:
    op.create_table(
        "removal",
        Column("tenant", Text, nullable=False),
        Column("operation_id", Text, nullable=False),
        Column("store", Text, nullable=False),
        Column("family", Text, nullable=False),
        Column("item", Text, nullable=False),
        Column(
            "deleted_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")
        ),
        Column("removed_at", DateTime(timezone=True)),
        PrimaryKeyConstraint("tenant", "operation_id", "store", "family", "item"),
    )
    is_key = text("store = 'redis'")
    op.create_index("removal_key_idx", "removal", ["tenant", "item"], postgresql_where=is_key)


def _create_erasure() -> None:
    op.create_table(
        "erasure",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("subject", Text, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        Column("subject_id", Text),
        Column("counts", JSONB, nullable=False, server_default=text("'{}'")),
        Column(
            "requested_at",
            DateTime(timezone=True),
            nullable=False,
            server_default=text("clock_timestamp()"),
        ),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "id"),
    )
    op.create_index("erasure_subject_idx", "erasure", ["tenant", "digest", text("requested_at DESC")])


def _add_record_ids() -> None:
    """Let a dream pass name the records whose text it keeps, so that deleting one clears the text."""
    column: Column[list[str]] = Column("record_ids", ARRAY(Text), nullable=False, server_default=text("'{}'"))
    op.add_column("dream_pass", column)
    op.create_index("dream_pass_record_ids_idx", "dream_pass", ["record_ids"], postgresql_using="gin")
