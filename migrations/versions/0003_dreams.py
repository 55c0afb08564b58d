"""Dream runs, their passes and changes, and what each pass has read."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations import row_level_security

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


_TABLES = (
    "dream_run",
    "dream_pass",
    "dream_change",
    "turn_read",
    "entry_reviewed",
    "preference_occurrence",
)


def upgrade() -> None:
    """Apply this step."""
    _create_tables()
    for table in _TABLES:
        row_level_security.secure(table)
        row_level_security.open_to_role(table)


def _create_tables() -> None:
    op.create_table(
        "dream_run",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("dry_run", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("undone_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("dream_run_pkey")),
    )
    op.create_index(
        "dream_run_active_idx",
        "dream_run",
        ["tenant", "agent_id", "user_id"],
        unique=True,
        postgresql_where=sa.text("state = 'running'"),
        postgresql_nulls_not_distinct=True,
    )
    op.create_index(
        "dream_run_newest_idx",
        "dream_run",
        ["tenant", sa.literal_column("created_at DESC"), "id"],
        unique=False,
    )
    op.create_table(
        "dream_change",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("pass", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("prior_state", sa.Text(), nullable=True),
        sa.Column("successors", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "run_id"],
            ["dream_run.tenant", "dream_run.id"],
            name=op.f("dream_change_tenant_run_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("dream_change_pkey")),
    )
    op.create_index("dream_change_run_idx", "dream_change", ["tenant", "run_id", "id"], unique=False)
    op.create_table(
        "dream_pass",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column(
            "inputs", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("directive", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("proposed", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column(
            "rejections",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'"),
            nullable=False,
        ),
        sa.Column(
            "applied", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant", "run_id"],
            ["dream_run.tenant", "dream_run.id"],
            name=op.f("dream_pass_tenant_run_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "run_id", "name", name=op.f("dream_pass_pkey")),
    )
    op.create_table(
        "entry_reviewed",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "entry_id"],
            ["entry.tenant", "entry.id"],
            name=op.f("entry_reviewed_tenant_entry_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "entry_id", name=op.f("entry_reviewed_pkey")),
    )
    op.create_table(
        "preference_occurrence",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("inferred_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant", "session_id", "seq"],
            ["turn.tenant", "turn.session_id", "turn.seq"],
            name=op.f("preference_occurrence_tenant_session_id_seq_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant", "session_id", "seq", "key", name=op.f("preference_occurrence_pkey")
        ),
    )
    op.create_index(
        "preference_occurrence_key_idx", "preference_occurrence", ["tenant", "agent_id", "key"], unique=False
    )
    op.create_table(
        "turn_read",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("pass", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "session_id", "seq"],
            ["turn.tenant", "turn.session_id", "turn.seq"],
            name=op.f("turn_read_tenant_session_id_seq_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "session_id", "seq", "pass", name=op.f("turn_read_pkey")),
    )


def downgrade() -> None:
    """Take this step back."""
    op.drop_table("turn_read")
    op.drop_index("preference_occurrence_key_idx", table_name="preference_occurrence")
    op.drop_table("preference_occurrence")
    op.drop_table("entry_reviewed")
    op.drop_table("dream_pass")
    op.drop_index("dream_change_run_idx", table_name="dream_change")
    op.drop_table("dream_change")
    op.drop_index("dream_run_newest_idx", table_name="dream_run")
    op.drop_index(
        "dream_run_active_idx",
        table_name="dream_run",
        postgresql_where=sa.text("state = 'running'"),
        postgresql_nulls_not_distinct=True,
    )
    op.drop_table("dream_run")
