"""The table of promotions. Deleting a session deletes its promotions."""

from sqlalchemy import (
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from shared.foundation.content import Subject, content, names, no_content
from shared.infra.postgres import metadata

promotion = Table(
    "promotion",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("actor", Text, nullable=False, info=no_content("the id of a key")),
    Column("trigger", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("target", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("reason", Text, info=content()),
    Column("report_id", Text, info=no_content("a random id")),
    Column("state", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("results", JSONB, nullable=False, server_default=text("'[]'"), info=content()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("finished_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("tenant", "id"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
)

Index("promotion_session_idx", promotion.c.tenant, promotion.c.session_id, promotion.c.created_at.desc())
