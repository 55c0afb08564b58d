"""The tables of agent profiles, their texts and their files.

The keys of an agent are in the tables of the state store, as those of sessions are.
"""

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.foundation.content import Subject, content, names, no_content
from shared.infra.postgres import metadata

agent = Table(
    "agent",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.AGENT)),
    Column("public_key", Text, info=content()),
    Column("document", Text, info=content()),
    # Computed from both, but stored: it must not change when the way of computing it does.
    Column("identity", Text, info=content()),
    # The store types of its sessions that name none themselves.
    Column("store_types", ARRAY(Text), info=no_content("of a fixed list")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The options of its contexts that a request does not name.
    Column("context_options", JSONB, info=content()),
    # Whether facts are mined out of its conversations, and out of those without a user, too.
    Column("mine_facts", Boolean, nullable=False, server_default=text("true")),
    Column("mine_common", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant", "id"),
)

agent_text = Table(
    "agent_text",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("agent_id", Text, nullable=False, info=names(Subject.AGENT)),
    Column("content", Text, nullable=False, info=content()),
    Column("metadata", JSONB, nullable=False, info=content()),
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
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("agent_id", Text, nullable=False, info=names(Subject.AGENT)),
    Column("name", Text, nullable=False, info=content()),
    Column("content", LargeBinary, nullable=False, info=content()),
    Column("content_type", Text, nullable=False, info=content()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "agent_id", "name"),
    ForeignKeyConstraint(["tenant", "agent_id"], ["agent.tenant", "agent.id"], ondelete="CASCADE"),
)
