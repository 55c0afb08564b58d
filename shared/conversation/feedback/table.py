"""The table of feedback signals. Deleting a session deletes its signals."""

from sqlalchemy import (
    Column,
    DateTime,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
)

from shared.foundation.content import Subject, content, names, names_turns, no_content
from shared.infra.postgres import metadata

feedback_signal = Table(
    "feedback_signal",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("agent_id", Text, nullable=False, info=content()),
    Column("user_id", Text, info=content()),
    Column("type", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("summary", Text, nullable=False, info=content()),
    Column("detail", Text, info=content()),
    # The turns of the session that the signal was derived from; NULL: somebody reported it.
    Column("first_seq", Integer),
    Column("seq", Integer, info=names_turns(Subject.WITHDRAWN_TURN, first_seq="first_seq")),
    # How likely a doubtful correction is one, in 0..1, until a model has judged it; NULL: there is no doubt.
    Column("likelihood", Float),
    # The end of the assistant's turn before a doubtful correction, for the model that judges it.
    Column("previous", Text, info=content()),
    Column(
        "previous_seq",
        Integer,
        info=names_turns(
            *(Subject.TURN, Subject.WITHDRAWN_TURN), first_seq="previous_seq", clears=("previous",)
        ),
    ),
    # The time of the statement and not of the transaction: signals of one batch of turns keep their order.
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("tenant", "id"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
)

Index(
    "feedback_signal_scope_idx",
    feedback_signal.c.tenant,
    feedback_signal.c.agent_id,
    feedback_signal.c.user_id,
    feedback_signal.c.created_at.desc(),
)
Index(
    "feedback_signal_newest_idx",
    feedback_signal.c.tenant,
    feedback_signal.c.created_at.desc(),
    feedback_signal.c.id,
)
# For deleting a session, and for listing the signals of one session.
Index("feedback_signal_session_idx", feedback_signal.c.tenant, feedback_signal.c.session_id)
