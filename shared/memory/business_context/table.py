"""The table of the parts of each tenant's business context.

A part is what people wrote between two promoted lines, or a promoted line. A line that was promoted several
times has a row for each, with its own provenance, at the same position: it is shown while one row is left.
So whatever deletes a session, a user or an agent takes away what came from them, and nothing else.
"""

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
)

from shared.foundation.content import Subject, content, names, no_content
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import BY_CHARACTERS, metadata

business_context_part = Table(
    "business_context_part",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("position", Integer, nullable=False),
    Column("content", Text, nullable=False, info=content()),
    # The provenance of a promoted line; a part that people wrote has none. A session that expired is no
    # longer named: what was promoted from it stays.
    Column("agent_id", Text, info=names(Subject.AGENT)),
    Column("user_id", Text, info=names(Subject.USER)),
    Column("session_id", Text, info=names(Subject.SESSION)),
    Column("snippet_id", Text, info=no_content("a random id")),
    Column("reason", Text, info=content()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    *origin_columns(),
    PrimaryKeyConstraint("tenant", "id"),
    CheckConstraint("(agent_id IS NULL) = (snippet_id IS NULL)", name="provenance"),
)

Index(
    "business_context_part_user_idx",
    business_context_part.c.tenant,
    business_context_part.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=business_context_part.c.user_id.is_not(None),
)
Index("business_context_part_agent_idx", business_context_part.c.tenant, business_context_part.c.agent_id)
