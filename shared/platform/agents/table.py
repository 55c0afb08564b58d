"""The tables of agent profiles, their texts and their files.

The keys of an agent are in the tables of the state store, as those of sessions are.
"""

from sqlalchemy import (
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.infra.postgres import metadata

agent = Table(
    "agent",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("public_key", Text),
    Column("document", Text),
    # Computed from both, but stored: it must not change when the way of computing it does.
    Column("identity", Text),
    # The store types of its sessions that name none themselves.
    Column("store_types", ARRAY(Text)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "id"),
)

agent_text = Table(
    "agent_text",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("metadata", JSONB, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "id"),
    ForeignKeyConstraint(["tenant", "agent_id"], ["agent.tenant", "agent.id"], ondelete="CASCADE"),
)

Index(
    "agent_text_order_idx",
    agent_text.c.tenant,
    agent_text.c.agent_id,
    agent_text.c.created_at,
    agent_text.c.id,
)

agent_file = Table(
    "agent_file",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("agent_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "agent_id", "name"),
    ForeignKeyConstraint(["tenant", "agent_id"], ["agent.tenant", "agent.id"], ondelete="CASCADE"),
)
