"""Charges, prices, budgets, and the totals that sessions mirror."""

import sqlalchemy as sa
from alembic import op

from migrations import row_level_security

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TABLES = ("charge", "price", "budget")
_TOTALS = (
    ("total_input_tokens", sa.BigInteger()),
    ("total_output_tokens", sa.BigInteger()),
    ("total_cached_tokens", sa.BigInteger()),
    ("unpriced_charges", sa.Integer()),
)


def upgrade() -> None:
    """Apply this step."""
    _create_charge()
    _create_price_and_budget()
    for table in _TABLES:
        row_level_security.secure(table)
        row_level_security.open_to_role(table)
    for name, kind in _TOTALS:
        op.add_column("session", sa.Column(name, kind, server_default=sa.text("0"), nullable=False))
    op.add_column("session", sa.Column("total_cost_usd", sa.Numeric(), nullable=True))
    op.add_column("session", sa.Column("spend_updated_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("dream_pass", sa.Column("cost_usd", sa.Numeric(), nullable=True))


def _create_charge() -> None:
    op.create_table(
        "charge",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("usage_id", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_usd", sa.Numeric(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("charge_pkey")),
        sa.UniqueConstraint(
            "tenant", "session_id", "usage_id", name=op.f("charge_tenant_session_id_usage_id_key")
        ),
    )
    op.create_index("charge_newest_idx", "charge", ["tenant", "created_at"], unique=False)
    for name, column in (("charge_user_idx", "user_id"), ("charge_held_idx", "held_until")):
        condition = sa.text(f"{column} IS NOT NULL")
        op.create_index(name, "charge", ["tenant", column], unique=False, postgresql_where=condition)


def _create_price_and_budget() -> None:
    op.create_table(
        "price",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("input", sa.Numeric(), nullable=False),
        sa.Column("output", sa.Numeric(), nullable=False),
        sa.Column("cached", sa.Numeric(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "model", name=op.f("price_pkey")),
    )
    op.create_table(
        "budget",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("limit_usd", sa.Numeric(), nullable=True),
        sa.Column("limit_tokens", sa.BigInteger(), nullable=True),
        sa.Column("allow_unpriced", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("window_starts", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_usd", sa.Numeric(), server_default=sa.text("0"), nullable=False),
        sa.Column("used_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("reserved_usd", sa.Numeric(), server_default=sa.text("0"), nullable=False),
        sa.Column("reserved_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "scope", "period", name=op.f("budget_pkey")),
    )


def downgrade() -> None:
    """Take this step back."""
    op.drop_column("dream_pass", "cost_usd")
    for name in ("spend_updated_at", "total_cost_usd", *(name for name, _ in reversed(_TOTALS))):
        op.drop_column("session", name)
    for table in ("budget", "price", "charge"):
        op.drop_table(table)
