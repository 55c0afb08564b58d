"""Create skills, with their versions, files and uses, and what dreams propose about them."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from migrations import row_level_security

revision = "a020"
down_revision = "a019"
branch_labels = None
depends_on = None

_TABLES = ("skill", "skill_version", "skill_file", "skill_use", "skill_proposal", "skill_review")


def upgrade() -> None:
    """Apply this migration."""
    _create_skill()
    _create_version()
    _create_file()
    _create_use()
    _create_proposal()
    _create_review()
    for table in _TABLES:
        row_level_security.secure(table)


def downgrade() -> None:
    """Revert this migration, with the jobs and the index of a kind that earlier versions don't know."""
    op.execute("SELECT set_config('loci.tenant', '*', true)")
    op.execute("DELETE FROM job WHERE kind = 'skill'")
    op.execute("DELETE FROM index_generation WHERE kind = 'skill'")
    for table in reversed(_TABLES):
        op.drop_table(table)


def _created_at() -> Column[object]:
    return Column(
        "created_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")
    )


def _random_id() -> Column[str]:
    return Column("id", Text, nullable=False, server_default=text("gen_random_uuid()::text"))


def _create_skill() -> None:
    op.create_table(
        "skill",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("name", Text, nullable=False),
        Column("summary", Text, nullable=False),
        Column("summary_origin", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("see_also", ARRAY(Text), nullable=False),
        Column("front_matter", JSONB, nullable=False, server_default=text("'{}'")),
        Column("files", JSONB, nullable=False, server_default=text("'[]'")),
        Column("origin", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        _created_at(),
        Column("updated_at", DateTime(timezone=True)),
        Column("last_used_at", DateTime(timezone=True)),
        Column("search_terms", TSVECTOR, nullable=False),
        PrimaryKeyConstraint("tenant", "id"),
        UniqueConstraint("tenant", "agent_id", "user_id", "name", postgresql_nulls_not_distinct=True),
        CheckConstraint("origin IN ('caller', 'import', 'dream')", name="origin"),
        CheckConstraint("summary_origin IN ('caller', 'content', 'model')", name="summary_origin"),
    )
    _index_user("skill")
    op.create_index("skill_search_terms_idx", "skill", ["search_terms"], postgresql_using="gin")


def _index_user(table: str) -> None:
    op.create_index(
        f"{table}_user_idx",
        table,
        ["tenant", "user_id"],
        postgresql_ops={"user_id": "text_pattern_ops"},
        postgresql_where=text("user_id IS NOT NULL"),
    )


def _create_version() -> None:
    op.create_table(
        "skill_version",
        Column("tenant", Text, nullable=False),
        Column("skill_id", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("summary", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("see_also", ARRAY(Text), nullable=False),
        Column("front_matter", JSONB, nullable=False),
        Column("files", JSONB, nullable=False),
        Column("origin", Text, nullable=False),
        _created_at(),
        PrimaryKeyConstraint("tenant", "skill_id", "version"),
        ForeignKeyConstraint(["tenant", "skill_id"], ["skill.tenant", "skill.id"], ondelete="CASCADE"),
    )


def _create_file() -> None:
    op.create_table(
        "skill_file",
        Column("tenant", Text, nullable=False),
        _random_id(),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("sha256", Text, nullable=False),
        Column("content", LargeBinary, nullable=False),
        _created_at(),
        PrimaryKeyConstraint("tenant", "id"),
        UniqueConstraint("tenant", "agent_id", "user_id", "sha256", postgresql_nulls_not_distinct=True),
    )
    _index_user("skill_file")


def _create_use() -> None:
    op.create_table(
        "skill_use",
        Column("tenant", Text, nullable=False),
        _random_id(),
        Column("skill_id", Text, nullable=False),
        Column("session_id", Text),
        Column("used_by", Text, nullable=False),
        _created_at(),
        PrimaryKeyConstraint("tenant", "id"),
        ForeignKeyConstraint(["tenant", "skill_id"], ["skill.tenant", "skill.id"], ondelete="CASCADE"),
        CheckConstraint("used_by IN ('caller', 'context')", name="used_by"),
    )
    op.create_index("skill_use_skill_idx", "skill_use", ["tenant", "skill_id", "created_at"])
    op.create_index(
        "skill_use_session_idx",
        "skill_use",
        ["tenant", "session_id"],
        postgresql_where=text("session_id IS NOT NULL"),
    )
    op.create_index("skill_use_created_idx", "skill_use", ["created_at"])


def _create_proposal() -> None:
    op.create_table(
        "skill_proposal",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("user_id", Text),
        Column("run_id", Text, nullable=False),
        Column("pass", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("summary", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("replaces", ARRAY(Text), nullable=False),
        Column("based_on", JSONB, nullable=False),
        Column("session_ids", ARRAY(Text), nullable=False),
        Column("skill_ids", ARRAY(Text), nullable=False),
        Column("state", Text, nullable=False),
        Column("reason", Text),
        Column("decided_by", Text),
        Column("decided_at", DateTime(timezone=True)),
        Column("published_version", BigInteger),
        Column("before", JSONB, nullable=False, server_default=text("'[]'")),
        _created_at(),
        PrimaryKeyConstraint("tenant", "id"),
        ForeignKeyConstraint(["tenant", "run_id"], ["dream_run.tenant", "dream_run.id"], ondelete="CASCADE"),
        CheckConstraint("state IN ('open', 'published', 'refused', 'withdrawn')", name="state"),
        CheckConstraint("(state = 'published') = (published_version IS NOT NULL)", name="published_version"),
    )
    op.create_index(
        "skill_proposal_newest_idx",
        "skill_proposal",
        ["tenant", "agent_id", text("created_at DESC"), "id"],
    )
    op.create_index("skill_proposal_run_idx", "skill_proposal", ["tenant", "run_id"])
    for column in ("session_ids", "skill_ids"):
        op.create_index(f"skill_proposal_{column}_idx", "skill_proposal", [column], postgresql_using="gin")
    _index_user("skill_proposal")


def _create_review() -> None:
    op.create_table(
        "skill_review",
        Column("tenant", Text, nullable=False),
        Column("skill_id", Text, nullable=False),
        Column("pass", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        PrimaryKeyConstraint("tenant", "skill_id", "pass"),
        ForeignKeyConstraint(["tenant", "skill_id"], ["skill.tenant", "skill.id"], ondelete="CASCADE"),
    )
