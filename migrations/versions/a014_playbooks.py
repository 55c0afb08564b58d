"""Create playbooks, and the consents to share patterns of them between tenants."""

from alembic import op
from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from migrations import row_level_security

revision = "a014"
down_revision = "a013"
branch_labels = None
depends_on = None

_MIN_TENANTS = 5


def upgrade() -> None:
    """Apply this migration."""
    _create_playbook()
    _create_pattern_consent()
    for table in ("playbook", "pattern_consent"):
        row_level_security.secure(table)
    _create_shared_patterns()
    op.add_column("scratchpad_snippet", Column("playbook_id", Text))
    op.create_index(
        "scratchpad_snippet_playbook_idx",
        "scratchpad_snippet",
        ["tenant", "playbook_id"],
        postgresql_where=text("playbook_id IS NOT NULL"),
    )


def downgrade() -> None:
    """Revert this migration."""
    op.drop_column("scratchpad_snippet", "playbook_id")
    op.execute("DROP FUNCTION shared_patterns(text)")
    op.drop_table("playbook")
    op.drop_table("pattern_consent")


def _create_playbook() -> None:
    op.create_table(
        "playbook",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("session_id", Text),
        Column("last_seq", Integer),
        Column("flow_dact", Text, nullable=False),
        Column("slots", JSONB, nullable=False),
        Column("tool_calls", JSONB, nullable=False),
        Column(
            "tool_ids", JSONB, Computed("jsonb_path_query_array(tool_calls, '$[*].tool_id')", persisted=True)
        ),
        Column("outcome", Text, nullable=False),
        Column("user_query", Text, nullable=False),
        Column("words_digest", LargeBinary, nullable=False),
        Column("reason", Text, nullable=False),
        Column(
            "promoted",
            Boolean,
            Computed("reason IN ('satisfied', 'continued', 'reported')", persisted=True),
        ),
        Column(
            "created_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")
        ),
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
    _create_playbook_indexes()


def _create_playbook_indexes() -> None:
    op.create_index("playbook_newest_idx", "playbook", ["tenant", "agent_id", text("created_at DESC"), "id"])
    op.create_index("playbook_flow_idx", "playbook", ["flow_dact", "tenant"])
    op.create_index("playbook_words_idx", "playbook", ["tenant", "words_digest"])
    op.create_index(
        "playbook_user_idx",
        "playbook",
        ["tenant", "user_id"],
        postgresql_ops={"user_id": "text_pattern_ops"},
        postgresql_where=text("user_id IS NOT NULL"),
    )
    op.create_index(
        "playbook_session_idx",
        "playbook",
        ["tenant", "session_id"],
        postgresql_where=text("session_id IS NOT NULL"),
    )
    op.create_index(
        "playbook_waiting_idx",
        "playbook",
        ["tenant", "agent_id"],
        postgresql_where=text("reason = 'waiting'"),
    )


def _create_pattern_consent() -> None:
    op.create_table(
        "pattern_consent",
        Column("tenant", Text, primary_key=True),
        Column("actor", Text, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
    )


def _create_shared_patterns() -> None:
    """Create the one function that reads across tenants: flows, ids of tools and outcomes, counted.

    Its owner may read the playbooks of consenting tenants alone, and it returns what five of them share, to a
    tenant that consents itself.
    """
    op.execute("CREATE POLICY patterns ON pattern_consent FOR SELECT TO CURRENT_USER USING (true)")
    op.execute(
        """
        CREATE POLICY patterns ON playbook FOR SELECT TO CURRENT_USER
        USING (EXISTS (SELECT FROM pattern_consent c WHERE c.tenant = playbook.tenant))
        """
    )
    op.execute(
        f"""
        CREATE FUNCTION shared_patterns(flow text)
        RETURNS TABLE (flow_dact text, tool_ids jsonb, outcome text, count bigint)
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
        AS $$
            SELECT p.flow_dact, p.tool_ids, lower(p.outcome), count(DISTINCT p.tenant)
            FROM playbook p JOIN pattern_consent c ON c.tenant = p.tenant
            WHERE (flow IS NULL OR p.flow_dact = flow) AND (p.promoted OR p.reason = 'not_completed')
              AND EXISTS (
                SELECT FROM pattern_consent asking
                WHERE asking.tenant = nullif(current_setting('loci.tenant', true), '')
              )
            GROUP BY p.flow_dact, p.tool_ids, lower(p.outcome)
            HAVING count(DISTINCT p.tenant) >= {_MIN_TENANTS}
        $$
        """
    )
    op.execute("REVOKE ALL ON FUNCTION shared_patterns(text) FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION shared_patterns(text) TO {row_level_security.role()}")
