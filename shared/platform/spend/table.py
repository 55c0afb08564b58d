"""The tables of charges, prices and budgets.

A `charge` is written before the call with its upper bound, and updated with the actual numbers
afterwards. It has no foreign key to its session, because it must outlive a session that is deleted.
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

from shared.foundation.content import Subject, content, names_and_clears, no_content
from shared.infra.postgres import BY_CHARACTERS, metadata

charge = Table(
    "charge",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    # Set for usage that a session reported. NULL for the calls of workers, and after the user was erased.
    Column("session_id", Text, info=names_and_clears(Subject.SESSION, clears=("usage_id",))),
    # The caller's own id of a reported usage: a second report with the same id adds nothing.
    Column("usage_id", Text, info=content()),
    Column("agent_id", Text, info=no_content("who paid: the amounts stay")),
    Column(
        "user_id", Text, info=names_and_clears(Subject.USER, clears=("user_id", "session_id", "usage_id"))
    ),
    Column("purpose", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("model", Text, nullable=False, info=no_content("the name of a model")),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    # None where the model has no price: the cost is then unknown, which is not zero.
    Column("cost_usd", Numeric),
    Column("state", Text, nullable=False, info=no_content("one of a fixed list")),
    # Set for a reservation: after this time its worker counts as dead, and its upper bound is charged.
    Column("reserved_until", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "session_id", "usage_id"),
)

Index("charge_newest_idx", charge.c.tenant, charge.c.created_at)
Index(
    "charge_user_idx",
    charge.c.tenant,
    charge.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=charge.c.user_id.is_not(None),
)
Index(
    "charge_reserved_idx",
    charge.c.tenant,
    charge.c.reserved_until,
    postgresql_where=charge.c.reserved_until.is_not(None),
)

price = Table(
    "price",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("model", Text, nullable=False, info=no_content("the name of a model")),
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
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    # `tenant`, `agent/<agent_id>` or `purpose/<purpose>`.
    Column("scope", Text, nullable=False, info=no_content("who pays: set by an administrator")),
    Column("period", Text, nullable=False, info=no_content("one of a fixed list")),
    # Random. Metrics name a budget by it, because their readers may not know the tenant.
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("limit_usd", Numeric),
    Column("limit_tokens", BigInteger),
    Column("allow_unpriced", Boolean, nullable=False, server_default=text("false")),
    # The counters sum up the charges of the window that begins here. They are updated in the same
    # transaction as the charges.
    Column("window_started_at", DateTime(timezone=True), nullable=False),
    Column("used_usd", Numeric, nullable=False, server_default=text("0")),
    Column("used_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("reserved_usd", Numeric, nullable=False, server_default=text("0")),
    Column("reserved_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "scope", "period"),
)
