"""The table of summaries: at most one for each session."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
)

from shared.foundation.content import Subject, content, names, names_turns, no_content
from shared.infra.postgres import metadata

session_summary = Table(
    "session_summary",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("content", Text, nullable=False, info=content()),
    # It has all turns from `first_seq` to `last_seq`. If one of them is withdrawn, it is made anew.
    Column("first_seq", Integer, nullable=False),
    Column(
        "last_seq", Integer, nullable=False, info=names_turns(Subject.WITHDRAWN_TURN, first_seq="first_seq")
    ),
    Column("model", Text, nullable=False, info=no_content("the name of a model")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # When the session was read for it. What is noted while the model writes is later, and in the next one.
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "session_id"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
    CheckConstraint("1 <= first_seq AND first_seq <= last_seq", name="covered"),
)
