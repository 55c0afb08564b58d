"""The tables of tenants and API keys.

A key's secret is stored as its SHA-256. It has 256 random bits, so a slow password hash would add nothing.
"""

from sqlalchemy import CheckConstraint, Column, DateTime, ForeignKey, LargeBinary, Table, Text, func
from sqlalchemy.dialects.postgresql import ARRAY

from shared.foundation.content import no_content
from shared.infra.postgres import metadata

tenant = Table(
    "tenant",
    metadata,
    Column("tenant", Text, primary_key=True, info=no_content("the tenant")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # A transaction across all tenants names its tenant '*', so no tenant may have that name.
    CheckConstraint("tenant ~ '^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$'", name="name"),
)

tenant_secret = Table(
    "tenant_secret",
    metadata,
    Column(
        "tenant",
        Text,
        ForeignKey("tenant.tenant", ondelete="CASCADE"),
        primary_key=True,
        info=no_content("the tenant"),
    ),
    # The digests of deleted memories are keyed with it, so that nobody can test a guess without it.
    Column("secret", LargeBinary, nullable=False, info=no_content("random bytes")),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", Text, primary_key=True, info=no_content("a random id")),
    Column(
        "tenant",
        Text,
        ForeignKey("tenant.tenant", ondelete="CASCADE"),
        nullable=False,
        index=True,
        info=no_content("the tenant"),
    ),
    Column("digest", LargeBinary, nullable=False, info=no_content("a digest of random bytes")),
    Column("rights", ARRAY(Text), nullable=False, info=no_content("of a fixed list")),
    Column("agent_id", Text, info=no_content("set by an administrator, who revokes the key")),
    Column("user_id", Text, info=no_content("set by an administrator, who revokes the key")),
    Column("namespace", Text, info=no_content("set by an administrator, who revokes the key")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
)
