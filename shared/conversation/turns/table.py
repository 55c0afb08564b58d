"""The tables of turns, of the lines recalled with them, and of the memories that a session has seen."""

from sqlalchemy import (
    BigInteger,
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
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from shared.foundation.content import Subject, content, names, names_items, names_turns, no_content
from shared.foundation.origin import Channel
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import metadata

turn = Table(
    "turn",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("seq", Integer, nullable=False, info=names_turns(Subject.TURN, first_seq="seq")),
    Column("agent_id", Text, nullable=False, info=content()),
    Column("user_id", Text, info=content()),
    Column("role", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("speaker", Text, info=content()),
    Column("content", Text, nullable=False, info=content()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("received_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'"), info=content()),
    # The turn as a provider sent it, as JSON text: JSONB would lose the order of keys and how numbers were
    # written.
    Column("item", Text, info=content()),
    Column("edited_at", DateTime(timezone=True)),
    # The lines recalled with this turn, [{id, line, is_episode, skill_part?, version?}]. Contexts show them
    # together with the turn.
    Column("recalled_lines", JSONB, nullable=False, server_default=text("'[]'"), info=content()),
    Column(
        "recalled_ids",
        ARRAY(Text),
        nullable=False,
        server_default=text("'{}'"),
        info=names_items(Subject.MEMORY, Subject.SKILL, lists=("recalled_lines",)),
    ),
    Column("search_terms", TSVECTOR, nullable=False, info=content()),
    # The version of the point in the index. A session can be created anew under the id of a deleted one, and
    # its turns are numbered from 1 again: with the time as their version they are newer than deleted ones.
    Column(
        "version",
        BigInteger,
        nullable=False,
        server_default=text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"),
    ),
    # A turn that was stored without a trust has that of its role.
    *origin_columns(Channel.TURN, trust=None),
    PrimaryKeyConstraint("tenant", "session_id", "seq"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
)

# What contexts, searches and passes read. Items may be large, and only the log shows them.
READ_COLUMNS = [
    column
    for column in turn.c
    if column.name not in {"search_terms", "recalled_ids", "received_at", "item", "edited_at"}
]
LOG_COLUMNS = [*READ_COLUMNS, turn.c.item, turn.c.edited_at]

Index("turn_search_terms_idx", turn.c.search_terms, postgresql_using="gin")
Index("turn_recalled_ids_idx", turn.c.recalled_ids, postgresql_using="gin")
Index("turn_received_idx", turn.c.received_at)

recalled_memory = Table(
    "recalled_memory",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("memory_id", Text, nullable=False, info=names(Subject.MEMORY)),
    Column("content_version", Integer, nullable=False),
    Column("seq", Integer, nullable=False, info=names_turns(Subject.WITHDRAWN_TURN, first_seq="seq")),
    PrimaryKeyConstraint("tenant", "session_id", "memory_id"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
)
