"""Keep proposals of memories, which wait for a judge or a caller, with their evidence.

A proposal goes with the last of its evidence, whichever statement deletes it, and a memory whose text is
edited is evidence no more.
"""

from alembic import op
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from migrations import row_level_security

revision = "a030"
down_revision = "a029"
branch_labels = None
depends_on = None

_ONE = "(memory_id IS NULL) = (session_id IS NOT NULL) AND (session_id IS NULL) = (seq IS NULL)"
_KEY = ["tenant", "proposal_id", "session_id", "seq", "memory_id"]


def upgrade() -> None:
    """Apply this migration."""
    _create_proposal()
    _create_evidence()
    for table in ("proposal", "proposal_evidence"):
        row_level_security.secure(table)
    _create_triggers()


def downgrade() -> None:
    """Revert this migration."""
    op.execute("DROP TRIGGER memory_edited_evidence ON memory")
    op.drop_table("proposal_evidence")
    op.drop_table("proposal")
    op.execute("DROP FUNCTION drop_edited_evidence()")
    op.execute("DROP FUNCTION drop_without_evidence()")


def _create_proposal() -> None:
    op.create_table(
        "proposal",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("kind", Text, nullable=False),
        Column("text", Text, nullable=False),
        Column("fingerprint", LargeBinary, nullable=False),
        Column("row", JSONB, nullable=False),
        Column("closes", Text, nullable=False),
        Column("replaces", ARRAY(Text), nullable=False),
        Column("edited_at", JSONB, nullable=False),
        Column("signs", ARRAY(Text), nullable=False),
        Column("evidence_user_ids", ARRAY(Text), nullable=False),
        Column("evidence_count", Integer, nullable=False),
        Column("state", Text, nullable=False),
        Column("asked_judge", Text),
        Column("reason", Text),
        Column("decided_by", Text),
        Column("decided_at", DateTime(timezone=True)),
        Column("memory_id", Text),
        Column(
            "created_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")
        ),
        Column("expires_at", DateTime(timezone=True), nullable=False),
        PrimaryKeyConstraint("tenant", "id"),
        CheckConstraint("state IN ('held', 'approved', 'refused', 'expired')", name="state"),
        CheckConstraint("(state = 'approved') = (memory_id IS NOT NULL)", name="memory"),
        CheckConstraint("(state = 'held') = (decided_at IS NULL)", name="decided"),
    )
    op.create_index(
        "proposal_held_idx",
        "proposal",
        ["tenant", "agent_id", "user_id", "kind", "fingerprint", "closes"],
        unique=True,
        postgresql_where=text("state = 'held'"),
        postgresql_nulls_not_distinct=True,
    )
    op.create_index("proposal_newest_idx", "proposal", ["tenant", "agent_id", text("created_at DESC"), "id"])
    op.create_index(
        "proposal_evidence_user_ids_idx", "proposal", ["evidence_user_ids"], postgresql_using="gin"
    )
    op.create_index(
        "proposal_user_idx",
        "proposal",
        ["tenant", "user_id"],
        postgresql_ops={"user_id": "text_pattern_ops"},
        postgresql_where=text("user_id IS NOT NULL"),
    )


def _create_evidence() -> None:
    op.create_table(
        "proposal_evidence",
        Column("tenant", Text, nullable=False),
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("proposal_id", Text, nullable=False),
        Column("session_id", Text),
        Column("seq", Integer),
        Column("memory_id", Text),
        ForeignKeyConstraint(
            ["tenant", "proposal_id"], ["proposal.tenant", "proposal.id"], ondelete="CASCADE"
        ),
        UniqueConstraint(*_KEY, postgresql_nulls_not_distinct=True),
        CheckConstraint(_ONE, name="one"),
    )
    op.create_index("proposal_evidence_turn_idx", "proposal_evidence", ["tenant", "session_id", "seq"])
    op.create_index("proposal_evidence_memory_idx", "proposal_evidence", ["tenant", "memory_id"])


def _create_triggers() -> None:
    op.execute(
        """
        CREATE FUNCTION drop_without_evidence() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            -- Two transactions that each delete the other's last neighbour must see each other.
            PERFORM FROM proposal WHERE tenant = OLD.tenant AND id = OLD.proposal_id FOR UPDATE;
            DELETE FROM proposal p WHERE p.tenant = OLD.tenant AND p.id = OLD.proposal_id AND NOT EXISTS (
                SELECT FROM proposal_evidence e WHERE e.tenant = p.tenant AND e.proposal_id = p.id);
            RETURN NULL;
        END $$
        """
    )
    op.execute(
        "CREATE TRIGGER proposal_without_evidence AFTER DELETE ON proposal_evidence"
        " FOR EACH ROW EXECUTE FUNCTION drop_without_evidence()"
    )
    op.execute(
        """
        CREATE FUNCTION drop_edited_evidence() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            DELETE FROM proposal_evidence WHERE tenant = NEW.tenant AND memory_id = NEW.id;
            RETURN NULL;
        END $$
        """
    )
    op.execute(
        "CREATE TRIGGER memory_edited_evidence AFTER UPDATE ON memory FOR EACH ROW"
        " WHEN (NEW.content <> OLD.content) EXECUTE FUNCTION drop_edited_evidence()"
    )
