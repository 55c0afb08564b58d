"""Create dream runs, their passes and changes, and what each pass has read or found."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from migrations import row_level_security

revision = "a005"
down_revision = "a004"
branch_labels = None
depends_on = None

_TABLES = (
    "dream_run",
    "dream_pass",
    "dream_change",
    "dream_read_turn",
    "dream_read_signal",
    "dream_evaluated_session",
    "dream_reviewed_memory",
    "dream_refused_memory",
    "dream_undone_change",
    "preference_occurrence",
)


def upgrade() -> None:
    """Apply this migration."""
    _create_run()
    _create_pass()
    _create_change()
    _create_what_was_read()
    _create_what_was_reviewed()
    _create_preference_occurrence()
    for table in _TABLES:
        row_level_security.secure(table)


def downgrade() -> None:
    """Revert this migration."""
    for table in reversed(_TABLES):
        op.drop_table(table)


def _deleted_with_run() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant", "run_id"], ["dream_run.tenant", "dream_run.id"], ondelete="CASCADE"
    )


def _deleted_with_turn() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant", "session_id", "seq"],
        ["turn.tenant", "turn.session_id", "turn.seq"],
        ondelete="CASCADE",
    )


def _create_run() -> None:
    op.create_table(
        "dream_run",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("state", Text, nullable=False),
        Column("dry_run", Boolean, nullable=False, server_default=text("false")),
        Column("actor", Text, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("finished_at", DateTime(timezone=True)),
        Column("undone_at", DateTime(timezone=True)),
        PrimaryKeyConstraint("tenant", "id"),
    )
    # A scope has at most one run at a time.
    op.create_index(
        "dream_run_active_idx",
        "dream_run",
        ["tenant", "agent_id", "user_id"],
        unique=True,
        postgresql_where=text("state = 'running'"),
        postgresql_nulls_not_distinct=True,
    )
    op.create_index("dream_run_newest_idx", "dream_run", ["tenant", text("created_at DESC"), "id"])


def _create_pass() -> None:
    op.create_table(
        "dream_pass",
        Column("tenant", Text, nullable=False),
        Column("run_id", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("position", Integer, nullable=False),
        Column("state", Text, nullable=False),
        Column("reason", Text),
        Column("inputs", JSONB, nullable=False, server_default=text("'{}'")),
        Column("directive", Text),
        Column("model", Text),
        Column("input_tokens", Integer, nullable=False, server_default=text("0")),
        Column("output_tokens", Integer, nullable=False, server_default=text("0")),
        Column("cost_usd", Numeric),
        Column("proposed", JSONB),
        Column("rejections", JSONB, nullable=False, server_default=text("'[]'")),
        Column("applied", JSONB, nullable=False, server_default=text("'{}'")),
        Column("started_at", DateTime(timezone=True)),
        Column("finished_at", DateTime(timezone=True)),
        PrimaryKeyConstraint("tenant", "run_id", "name"),
        _deleted_with_run(),
    )


def _create_change() -> None:
    op.create_table(
        "dream_change",
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("tenant", Text, nullable=False),
        Column("run_id", Text, nullable=False),
        Column("pass", Text, nullable=False),
        Column("action", Text, nullable=False),
        Column("entry_id", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("reason", Text),
        Column("previous_state", Text),
        Column("reinforcement_count", Integer),
        Column("added_count", Integer, nullable=False, server_default=text("0")),
        Column("successors", ARRAY(Text), nullable=False, server_default=text("'{}'")),
        _deleted_with_run(),
    )
    op.create_index("dream_change_run_idx", "dream_change", ["tenant", "run_id", "id"])


def _create_what_was_read() -> None:
    op.create_table(
        "dream_read_turn",
        Column("tenant", Text, nullable=False),
        Column("pass", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("seq", Integer, nullable=False),
        PrimaryKeyConstraint("tenant", "session_id", "seq", "pass"),
        _deleted_with_turn(),
    )
    op.create_table(
        "dream_read_signal",
        Column("tenant", Text, nullable=False),
        Column("pass", Text, nullable=False),
        Column("signal_id", Text, nullable=False),
        PrimaryKeyConstraint("tenant", "signal_id", "pass"),
        ForeignKeyConstraint(
            ["tenant", "signal_id"], ["feedback_signal.tenant", "feedback_signal.id"], ondelete="CASCADE"
        ),
    )
    op.create_table(
        "dream_evaluated_session",
        Column("tenant", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("seq", Integer, nullable=False, server_default=text("0")),
        Column("refused_seq", Integer, nullable=False, server_default=text("0")),
        Column("refusals", Integer, nullable=False, server_default=text("0")),
        PrimaryKeyConstraint("tenant", "session_id"),
        ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
    )


def _deleted_with_memory() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["tenant", "memory_id"], ["memory.tenant", "memory.id"], ondelete="CASCADE")


def _create_what_was_reviewed() -> None:
    op.create_table(
        "dream_reviewed_memory",
        Column("tenant", Text, nullable=False),
        Column("memory_id", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        PrimaryKeyConstraint("tenant", "memory_id"),
        _deleted_with_memory(),
    )
    op.create_table(
        "dream_refused_memory",
        Column("tenant", Text, nullable=False),
        Column("memory_id", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("batch_size", Integer, nullable=False),
        PrimaryKeyConstraint("tenant", "memory_id"),
        _deleted_with_memory(),
    )
    op.create_table(
        "dream_undone_change",
        Column("tenant", Text, nullable=False),
        Column("group_id", Text, nullable=False),
        Column("memory_id", Text, nullable=False),
        Column("content_version", Integer, nullable=False),
        Column("reason", Text, nullable=False),
        PrimaryKeyConstraint("tenant", "group_id", "memory_id"),
        _deleted_with_memory(),
    )
    op.create_index("dream_undone_change_memory_idx", "dream_undone_change", ["tenant", "memory_id"])


def _create_preference_occurrence() -> None:
    op.create_table(
        "preference_occurrence",
        Column("tenant", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("key", Text, nullable=False),
        Column("level", Text, nullable=False),
        Column("session_id", Text, nullable=False),
        Column("seq", Integer, nullable=False),
        Column("first_seq", Integer, nullable=False),
        Column("run_id", Text, nullable=False),
        Column("inferred_at", DateTime(timezone=True)),
        PrimaryKeyConstraint("tenant", "session_id", "seq", "key"),
        _deleted_with_turn(),
    )
    op.create_index("preference_occurrence_key_idx", "preference_occurrence", ["tenant", "agent_id", "key"])
