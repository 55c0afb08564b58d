"""The tables of sessions, and of who owns which namespace of working memory.

A writer takes the sequence numbers of turns from the row of a session while it is locked.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.foundation.content import (
    Subject,
    content,
    names,
    names_and_clears,
    names_collected,
    no_content,
)
from shared.infra.postgres import BY_CHARACTERS, metadata

session = Table(
    "session",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("kind", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("name", Text, info=content()),
    Column("agent_id", Text, nullable=False, info=names_collected(Subject.AGENT)),
    Column("user_id", Text, info=names_collected(Subject.USER)),
    # The working-memory namespace that this session writes to.
    Column("namespace", Text, nullable=False, info=content()),
    Column("store_types", ARRAY(Text), nullable=False, info=no_content("of a fixed list")),
    Column("last_agent", Text, info=content()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("ttl_seconds", Integer),
    Column("expires_at", DateTime(timezone=True)),
    Column("last_seq", Integer, nullable=False, server_default=text("0")),
    # When the last turn was received. A turn's own time would not do, because it may be backdated.
    Column("last_turn_at", DateTime(timezone=True)),
    # The totals of the reported usage, updated in the transaction that adds a charge.
    Column("total_input_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("total_output_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("total_cached_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("total_cost_usd", Numeric),
    Column("unpriced_charges", Integer, nullable=False, server_default=text("0")),
    Column("spend_updated_at", DateTime(timezone=True)),
    # The id in the form in which ids are compared (`names.fold`): no two may differ in case alone.
    Column("folded_id", Text, nullable=False, info=content()),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'"), info=content()),
    # The sequence number from which on contexts replay turns (`turns/window_start.py`).
    Column("window_start", Integer, nullable=False, server_default=text("0")),
    # How many turns the session holds. Numbers of deleted turns are not used again: `last_seq` may be higher.
    Column("turn_count", Integer, nullable=False, server_default=text("0")),
    # Changes whenever a turn is edited or deleted: what was cached before is out of date. It begins with the
    # time, so that nothing is valid for a session that is created anew under the id of a deleted one.
    Column(
        "log_revision",
        BigInteger,
        nullable=False,
        server_default=text("(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"),
    ),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "folded_id"),
)

working_namespace = Table(
    "working_namespace",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    # In the form in which namespaces are compared (`names.fold`).
    Column("namespace", Text, nullable=False, info=no_content("a name, kept until nothing is left under it")),
    # Whose the namespace is; without an agent, that of somebody who was erased: nobody may take what is left.
    Column("agent_id", Text, info=names_collected(Subject.AGENT)),
    Column("user_id", Text, info=names_collected(Subject.USER)),
    # The session that a namespace `session/…` goes with. Without it nobody may take what is left in there.
    # Patrols and subagents share theirs by name, over many sessions.
    Column("session_id", Text, info=names_and_clears(Subject.SESSION, clears=("session_id",))),
    Column("opened_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "namespace"),
    # However a session is deleted, its namespace ceases to belong to anybody in the same transaction.
    ForeignKeyConstraint(
        ["tenant", "session_id"],
        ["session.tenant", "session.id"],
        ondelete="SET NULL (session_id)",
    ),
)

Index("working_namespace_session_idx", working_namespace.c.tenant, working_namespace.c.session_id)
Index(
    "working_namespace_user_idx",
    working_namespace.c.tenant,
    working_namespace.c.user_id,
    postgresql_ops=BY_CHARACTERS,
)
Index(
    "working_namespace_agent_idx",
    working_namespace.c.tenant,
    working_namespace.c.agent_id,
)

Index("session_newest_idx", session.c.tenant, session.c.created_at.desc(), session.c.id)
Index(
    "session_user_idx",
    session.c.tenant,
    session.c.user_id,
    session.c.created_at,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=session.c.user_id.is_not(None),
)
Index(
    "session_agent_user_idx",
    session.c.tenant,
    session.c.agent_id,
    session.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=session.c.user_id.is_not(None),
)
Index(
    "session_agent_idx",
    session.c.tenant,
    session.c.agent_id,
    session.c.created_at,
)
Index("session_namespace_idx", session.c.tenant, func.lower(session.c.namespace))
Index("session_expiry_idx", session.c.expires_at, postgresql_where=session.c.expires_at.is_not(None))
