"""The table of pinned texts."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
)

from shared.foundation.content import Subject, content, names, no_content
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import BY_CHARACTERS, metadata

pinned_text = Table(
    "pinned_text",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("agent_id", Text, nullable=False, info=names(Subject.AGENT)),
    # Without a user, the text stands in the contexts of all users of the agent.
    Column("user_id", Text, info=names(Subject.USER)),
    Column("name", Text, nullable=False, info=content()),
    Column("content", Text, nullable=False, info=content()),
    Column("version", BigInteger, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    *origin_columns(),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "agent_id", "user_id", "name", postgresql_nulls_not_distinct=True),
    CheckConstraint("char_length(content) <= 4000", name="content_length"),
)

Index(
    "pinned_text_user_idx",
    pinned_text.c.tenant,
    pinned_text.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=pinned_text.c.user_id.is_not(None),
)
