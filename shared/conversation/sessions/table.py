"""The table of sessions. A writer takes the sequence numbers of turns from the row while it is locked."""

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Identity,
    Index,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from shared.foundation.content import Subject, content, names, no_content
from shared.infra.postgres import metadata

session = Table(
    "session",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("kind", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("name", Text, info=content()),
    Column("agent_id", Text, nullable=False, info=names(Subject.AGENT)),
    Column("user_id", Text, info=names(Subject.USER)),
    # The working-memory namespace that this session writes to.
    Column("namespace", Text, nullable=False, info=content()),
    Column("store_types", ARRAY(Text), nullable=False, info=no_content("of a fixed list")),
    Column("last_agent", Text, info=content()),
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

left_namespace = Table(
    "left_namespace",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("namespace", Text, nullable=False, info=content()),
    Column("agent_id", Text, nullable=False, info=names(Subject.AGENT)),
    Column("user_id", Text, info=names(Subject.USER)),
    Column("left_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    UniqueConstraint("tenant", "namespace", "agent_id", "user_id", postgresql_nulls_not_distinct=True),
)
"""Namespaces of patrols and subagents whose session is gone: erasing its user clears them all the same."""
