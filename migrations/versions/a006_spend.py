"""Create charges, prices and budgets.

A charge has no foreign key to its session: money that was spent stays spent after the session is
deleted.
"""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Numeric,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)

from migrations import row_level_security

revision = "a006"
down_revision = "a005"
branch_labels = None
depends_on = None

_TABLES = ("charge", "price", "budget")


def upgrade() -> None:
    """Apply this migration."""
    _create_charge()
    _create_price()
    _create_budget()
    for table in _TABLES:
        row_level_security.secure(table)


def downgrade() -> None:
    """Revert this migration."""
    for table in reversed(_TABLES):
        op.drop_table(table)


def _create_charge() -> None:
    op.create_table(
        "charge",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("session_id", Text),
        Column("usage_id", Text),
        Column("agent_id", Text),
        Column("user_id", Text),
        Column("purpose", Text, nullable=False),
        Column("model", Text, nullable=False),
        Column("input_tokens", BigInteger, nullable=False),
        Column("output_tokens", BigInteger, nullable=False),
        Column("cached_tokens", BigInteger, nullable=False),
        Column("cost_usd", Numeric),
        Column("state", Text, nullable=False),
        Column("reserved_until", DateTime(timezone=True)),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "id"),
        UniqueConstraint("tenant", "session_id", "usage_id"),
    )
    op.create_index("charge_newest_idx", "charge", ["tenant", "created_at"])
    for name, column in (("charge_user_idx", "user_id"), ("charge_reserved_idx", "reserved_until")):
        condition = text(f"{column} IS NOT NULL")
        op.create_index(name, "charge", ["tenant", column], postgresql_where=condition)


def _create_price() -> None:
    op.create_table(
        "price",
        Column("tenant", Text, nullable=False),
        Column("model", Text, nullable=False),
        # In USD per million tokens.
        Column("input", Numeric, nullable=False),
        Column("output", Numeric, nullable=False),
        Column("cached", Numeric, nullable=False),
        Column("updated_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "model"),
    )


def _create_budget() -> None:
    op.create_table(
        "budget",
        Column("tenant", Text, nullable=False),
        Column("scope", Text, nullable=False),
        Column("period", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("limit_usd", Numeric),
        Column("limit_tokens", BigInteger),
        Column("allow_unpriced", Boolean, nullable=False, server_default=text("false")),
        Column("window_started_at", DateTime(timezone=True), nullable=False),
        Column("used_usd", Numeric, nullable=False, server_default=text("0")),
        Column("used_tokens", BigInteger, nullable=False, server_default=text("0")),
        Column("reserved_usd", Numeric, nullable=False, server_default=text("0")),
        Column("reserved_tokens", BigInteger, nullable=False, server_default=text("0")),
        Column("updated_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "scope", "period"),
    )
