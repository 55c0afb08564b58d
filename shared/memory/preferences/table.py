"""The table of preferences."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from shared.foundation.content import Subject, content, names, names_collected, no_content
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import BY_CHARACTERS, metadata

preference = Table(
    "preference",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.PREFERENCE)),
    Column("agent_id", Text, nullable=False, info=names_collected(Subject.AGENT)),
    # Without a user, it is that of all users of the agent who have none of their own under the key.
    Column("user_id", Text, info=names_collected(Subject.USER)),
    Column("key", Text, nullable=False, info=content()),
    Column("flow", Text, info=content()),
    Column("description", Text, info=content()),
    Column("slot", Text, info=content()),
    Column("value", JSONB(none_as_null=True), info=content()),
    Column("template", Text, info=content()),
    Column("related", ARRAY(Text), nullable=False, info=content()),
    # On what basis it stands. Its `Origin` is in columns of its own, as that of every record.
    Column("origin", Text, nullable=False, info=no_content("one of a fixed list")),
    # The memory that it was learnt with. A caller's own rule has none.
    Column("memory_id", Text, info=names_collected(Subject.MEMORY)),
    Column("requires_user_permission", Boolean, nullable=False, server_default=text("false")),
    Column("permission_granted_at", DateTime(timezone=True)),
    Column("version", BigInteger, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The time of the statement and not of the transaction: the later one of two rules prevails.
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("search_terms", TSVECTOR, nullable=False, info=content()),
    *origin_columns(),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "agent_id", "user_id", "key", postgresql_nulls_not_distinct=True),
    CheckConstraint("flow IS NOT NULL OR description IS NOT NULL", name="condition"),
    CheckConstraint("slot IS NOT NULL OR template IS NOT NULL", name="effect"),
    CheckConstraint("(slot IS NULL) = (value IS NULL)", name="slot"),
)

Index("preference_flow_idx", preference.c.tenant, preference.c.agent_id, preference.c.flow)
Index(
    "preference_user_idx",
    preference.c.tenant,
    preference.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=preference.c.user_id.is_not(None),
)
Index(
    "preference_memory_idx",
    preference.c.tenant,
    preference.c.memory_id,
    postgresql_where=preference.c.memory_id.is_not(None),
)
Index("preference_search_terms_idx", preference.c.search_terms, postgresql_using="gin")
