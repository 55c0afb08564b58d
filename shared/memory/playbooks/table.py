"""The table of playbooks.

Whether a playbook is promoted follows from the reason, so neither can be written without the other, and a
check ties the reason to the outcome. One that waits for the user names the session and the turn that it waits
in. Deleting a session deletes the playbooks that name it; a session that expired is no longer named.
"""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB

from shared.foundation.content import Subject, content, names, names_collected, no_content
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import BY_CHARACTERS, metadata

playbook = Table(
    "playbook",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.PLAYBOOK)),
    Column("agent_id", Text, nullable=False, info=names_collected(Subject.AGENT)),
    Column("user_id", Text, info=names_collected(Subject.USER)),
    Column("session_id", Text, info=names_collected(Subject.SESSION)),
    # The turns of the flow: from the one in which the user asked to the last one. Withdrawing one of them
    # deletes the playbook (`queries.lock_from_turns`).
    Column("first_seq", Integer),
    Column("last_seq", Integer),
    Column("flow_dact", Text, nullable=False, info=content()),
    Column("slots", JSONB, nullable=False, info=content()),
    Column("tool_calls", JSONB, nullable=False, info=content()),
    # In their order: what patterns are made of.
    Column(
        "tool_ids",
        JSONB,
        Computed("jsonb_path_query_array(tool_calls, '$[*].tool_id')", persisted=True),
        info=content(),
    ),
    Column("outcome", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("user_query", Text, nullable=False, info=content()),
    # Finds the same words again without the index.
    Column("words_digest", LargeBinary, nullable=False, info=content()),
    Column("reason", Text, nullable=False, info=no_content("one of a fixed list")),
    Column(
        "promoted",
        Boolean,
        Computed("reason IN ('satisfied', 'continued', 'reported')", persisted=True),
    ),
    # The time of the statement and not of the transaction: playbooks of one transaction keep their order.
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    *origin_columns(),
    PrimaryKeyConstraint("tenant", "id"),
    CheckConstraint(
        "lower(outcome) IN ('completed', 'success', 'failure', 'uncertain', 'invalid')", name="outcome"
    ),
    CheckConstraint(
        "reason IN ('satisfied', 'continued', 'reported', 'not_completed', 'dissatisfied', 'corrected',"
        " 'waiting', 'session_ended')",
        name="reason",
    ),
    CheckConstraint(
        "(lower(outcome) IN ('completed', 'success')) = (reason <> 'not_completed')", name="completion"
    ),
    CheckConstraint(
        "reason <> 'waiting' OR (session_id IS NOT NULL AND last_seq IS NOT NULL)", name="waiting"
    ),
)

Index(
    "playbook_newest_idx",
    playbook.c.tenant,
    playbook.c.agent_id,
    playbook.c.created_at.desc(),
    playbook.c.id,
)
Index("playbook_flow_idx", playbook.c.flow_dact, playbook.c.tenant)
Index("playbook_words_idx", playbook.c.tenant, playbook.c.words_digest)
Index(
    "playbook_user_idx",
    playbook.c.tenant,
    playbook.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=playbook.c.user_id.is_not(None),
)
Index(
    "playbook_session_idx",
    playbook.c.tenant,
    playbook.c.session_id,
    postgresql_where=playbook.c.session_id.is_not(None),
)
Index(
    "playbook_waiting_idx",
    playbook.c.tenant,
    playbook.c.agent_id,
    postgresql_where=playbook.c.reason == "waiting",
)
