"""What was spent, what it may cost, and how much may be spent.

A `charge` is written before the call with the most that it can cost, and holds the actual afterwards.
It has no foreign key to its session: money that was spent stays spent when a session is closed.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Index,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)

from shared.infra.postgres import metadata

charge = Table(
    "charge",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    # Of what a session reported; None for what a worker spent, and once the user was erased.
    Column("session_id", Text),
    # The caller's own name of a reported usage: the same one again adds nothing.
    Column("usage_id", Text),
    Column("agent_id", Text),
    Column("user_id", Text),
    Column("purpose", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    # None where the model has no price: unknown, which is not zero.
    Column("cost_usd", Numeric),
    Column("state", Text, nullable=False),
    # Of a reservation: from then on its worker counts as dead, and it is settled at its bound.
    Column("reserved_until", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "session_id", "usage_id"),
)

Index("charge_newest_idx", charge.c.tenant, charge.c.created_at)
Index("charge_user_idx", charge.c.tenant, charge.c.user_id, postgresql_where=charge.c.user_id.is_not(None))
Index(
    "charge_reserved_idx",
    charge.c.tenant,
    charge.c.reserved_until,
    postgresql_where=charge.c.reserved_until.is_not(None),
)

price = Table(
    "price",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("model", Text, nullable=False),
    # USD per million tokens.
    Column("input", Numeric, nullable=False),
    Column("output", Numeric, nullable=False),
    Column("cached", Numeric, nullable=False),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "model"),
)

budget = Table(
    "budget",
    metadata,
    Column("tenant", Text, nullable=False),
    # `tenant`, `agent/<agent_id>` or `purpose/<purpose>`.
    Column("scope", Text, nullable=False),
    Column("period", Text, nullable=False),
    # Drawn at random: metrics name a budget by it, for they are read by who may not know its tenant.
    Column("id", Text, nullable=False),
    Column("limit_usd", Numeric),
    Column("limit_tokens", BigInteger),
    Column("allow_unpriced", Boolean, nullable=False, server_default=text("false")),
    # What the charges of the window from `window_starts` on come to; kept with them, in their transaction.
    Column("window_started_at", DateTime(timezone=True), nullable=False),
    Column("used_usd", Numeric, nullable=False, server_default=text("0")),
    Column("used_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("reserved_usd", Numeric, nullable=False, server_default=text("0")),
    Column("reserved_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "scope", "period"),
)
