"""The table of sessions. A writer takes the sequence numbers of turns from the row while it is locked."""

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Index,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from shared.infra.postgres import metadata

session = Table(
    "session",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text),
    Column("agent_id", Text, nullable=False),
    Column("user_id", Text),
    # The working-memory namespace that this session writes to.
    Column("namespace", Text, nullable=False),
    Column("store_types", ARRAY(Text), nullable=False),
    Column("last_agent", Text),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("ttl_seconds", Integer),
    Column("expires_at", DateTime(timezone=True)),
    Column("last_seq", Integer, nullable=False, server_default=text("0")),
    # When the last turn was received. A turn's own time would not do, because it may be backdated.
    Column("last_turn_at", DateTime(timezone=True)),
    # The totals of the reported usage, updated in the transaction that adds a charge.
    Column("total_input_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("total_output_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("total_cached_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("total_cost_usd", Numeric),
    Column("unpriced_charges", Integer, nullable=False, server_default=text("0")),
    Column("spend_updated_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("tenant", "id"),
)

Index("session_newest_idx", session.c.tenant, session.c.created_at.desc(), session.c.id)
Index("session_namespace_idx", session.c.tenant, session.c.namespace)
Index("session_expiry_idx", session.c.expires_at, postgresql_where=session.c.expires_at.is_not(None))
