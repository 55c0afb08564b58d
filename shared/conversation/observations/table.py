"""The table of observations. Deleting a session deletes its observations."""

from sqlalchemy import Column, DateTime, ForeignKeyConstraint, Index, PrimaryKeyConstraint, Table, Text, func
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from shared.foundation.content import Subject, content, names, no_content
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import metadata

observation = Table(
    "observation",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("agent_id", Text, nullable=False, info=content()),
    Column("user_id", Text, info=content()),
    Column("kind", Text, nullable=False, info=content()),
    Column("content", Text, nullable=False, info=content()),
    Column("data", JSONB(none_as_null=True), info=content()),
    Column("tags", ARRAY(Text), nullable=False, info=content()),
    Column("metadata", JSONB, nullable=False, info=content()),
    Column("observed_at", DateTime(timezone=True)),
    # The time of the statement and not of the transaction: observations of one transaction keep their order.
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("search_terms", TSVECTOR, nullable=False, info=content()),
    *origin_columns(),
    PrimaryKeyConstraint("tenant", "id"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
)

# For deleting a session, and for listing the observations of one session.
Index(
    "observation_session_idx",
    observation.c.tenant,
    observation.c.session_id,
    observation.c.created_at.desc(),
    observation.c.id,
)
Index("observation_search_terms_idx", observation.c.search_terms, postgresql_using="gin")
