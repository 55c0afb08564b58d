"""The table of snippets. Deleting a session deletes its snippets."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)

from shared.foundation.content import Subject, content, names, no_content
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import metadata

scratchpad_snippet = Table(
    "scratchpad_snippet",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    # A session has 64 slots, so a 65th snippet can't be stored, whatever a writer does.
    Column("slot", Integer, nullable=False),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("content", Text, nullable=False, info=content()),
    # The playbook that it repeats: a copy goes with its original.
    Column("playbook_id", Text, info=names(Subject.PLAYBOOK)),
    # How often the snippet was written.
    Column("count", Integer, nullable=False, server_default=text("1")),
    # When its text was stored elsewhere: such a snippet is evicted first, because nothing is lost with it.
    Column("promoted_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The time of the last use in microseconds, and above all revisions of the session before. The highest one
    # of a session tells whether a cached copy of its scratchpad is current.
    Column(
        "revision",
        BigInteger,
        nullable=False,
        server_default=text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"),
    ),
    *origin_columns(),
    PrimaryKeyConstraint("tenant", "session_id", "slot"),
    CheckConstraint("slot BETWEEN 1 AND 64", name="slot"),
    CheckConstraint("count >= 1", name="count"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
)

Index(
    "scratchpad_snippet_playbook_idx",
    scratchpad_snippet.c.tenant,
    scratchpad_snippet.c.playbook_id,
    postgresql_where=scratchpad_snippet.c.playbook_id.is_not(None),
)
