"""What sessions, agents and scratch stores hold: keys, transcripts, collections."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations import row_level_security

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TABLES = ("store", "store_key", "store_entry", "store_collection")


def upgrade() -> None:
    """Apply this step."""
    _create_store()
    _create_held()
    for table in _TABLES:
        row_level_security.secure(table)
        row_level_security.open_to_role(table)


def _create_store() -> None:
    op.create_table(
        "store",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column(
            "session_id",
            sa.Text(),
            sa.Computed("CASE WHEN kind = 'session' THEN owner END", persisted=True),
            nullable=True,
        ),
        sa.Column("written", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "session_id"],
            ["session.tenant", "session.id"],
            name=op.f("store_tenant_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "kind", "owner", name=op.f("store_pkey")),
    )
    op.create_index("store_session_idx", "store", ["tenant", "session_id"], unique=False)


def _create_held() -> None:
    _create_part(
        "store_key",
        "key",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("written", sa.BigInteger(), nullable=False),
    )
    op.create_index("store_key_order_idx", "store_key", ["tenant", "kind", "owner", "written"], unique=False)
    _create_part(
        "store_entry",
        "written",
        sa.Column("written", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    )
    _create_part(
        "store_collection",
        "label",
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("index", sa.Boolean(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=True),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("written", sa.BigInteger(), nullable=False),
    )


def _create_part(table: str, name: str, *columns: sa.Column[object]) -> None:
    """Create a table of what stores hold, each row named by the column `name` within its store."""
    op.create_table(
        table,
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        *columns,
        sa.ForeignKeyConstraint(
            ["tenant", "kind", "owner"],
            ["store.tenant", "store.kind", "store.owner"],
            name=op.f(f"{table}_tenant_kind_owner_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "kind", "owner", name, name=op.f(f"{table}_pkey")),
    )


def downgrade() -> None:
    """Take this step back."""
    op.drop_table("store_collection")
    op.drop_table("store_entry")
    op.drop_index("store_key_order_idx", table_name="store_key")
    op.drop_table("store_key")
    op.drop_index("store_session_idx", table_name="store")
    op.drop_table("store")
