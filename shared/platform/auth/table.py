"""Tenants and keys. A key's secret is stored as a SHA-256: it is 256 random bits, so no slow hash is owed."""

from sqlalchemy import CheckConstraint, Column, DateTime, ForeignKey, LargeBinary, Table, Text, func
from sqlalchemy.dialects.postgresql import ARRAY

from shared.infra.postgres import metadata

tenant = Table(
    "tenant",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # '*' is how a transaction names the fleet; no tenant may bear it.
    CheckConstraint("tenant ~ '^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$'", name="name"),
)

tenant_secret = Table(
    "tenant_secret",
    metadata,
    Column("tenant", Text, ForeignKey("tenant.tenant", ondelete="CASCADE"), primary_key=True),
    # Keys the digests of forgotten facts (LT13): without it they say nothing.
    Column("secret", LargeBinary, nullable=False),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, ForeignKey("tenant.tenant", ondelete="CASCADE"), nullable=False, index=True),
    Column("digest", LargeBinary, nullable=False),
    Column("rights", ARRAY(Text), nullable=False),
    Column("agent_id", Text),
    Column("user_id", Text),
    Column("namespace", Text),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
)
