"""The table of what dreams propose about skills, and the versions of skills that passes have reviewed."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.foundation.content import Subject, content, names, no_content
from shared.infra.postgres import BY_CHARACTERS, metadata

skill_proposal = Table(
    "skill_proposal",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("agent_id", Text, nullable=False, info=names(Subject.AGENT)),
    Column("user_id", Text, info=names(Subject.USER)),
    Column("run_id", Text, nullable=False, info=no_content("a random id")),
    Column("pass", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("name", Text, nullable=False, info=content()),
    Column("summary", Text, nullable=False, info=content()),
    Column("content", Text, nullable=False, info=content()),
    # The names of the skills that it stands for: publishing it deletes them.
    Column("replaces", ARRAY(Text), nullable=False, info=content()),
    # The skills that it was made from, which the model was shown whole: id → version.
    Column("based_on", JSONB, nullable=False, info=no_content("ids and numbers")),
    # The records whose text it repeats: deleting one deletes the proposal.
    Column("session_ids", ARRAY(Text), nullable=False, info=names(Subject.SESSION)),
    Column("skill_ids", ARRAY(Text), nullable=False, info=names(Subject.SKILL)),
    Column("state", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("reason", Text, info=content()),
    Column("decided_by", Text, info=no_content("the id of a key, or `dream`")),
    Column("decided_at", DateTime(timezone=True)),
    # Of a published one: the version that it became, and the skills as they were before, for undo.
    Column("published_version", BigInteger),
    Column("before", JSONB, nullable=False, server_default=text("'[]'"), info=content()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("tenant", "id"),
    ForeignKeyConstraint(["tenant", "run_id"], ["dream_run.tenant", "dream_run.id"], ondelete="CASCADE"),
    CheckConstraint("state IN ('open', 'published', 'refused', 'withdrawn')", name="state"),
    CheckConstraint("(state = 'published') = (published_version IS NOT NULL)", name="published_version"),
)

Index(
    "skill_proposal_newest_idx",
    skill_proposal.c.tenant,
    skill_proposal.c.agent_id,
    skill_proposal.c.created_at.desc(),
    skill_proposal.c.id,
)
Index("skill_proposal_run_idx", skill_proposal.c.tenant, skill_proposal.c.run_id)
Index("skill_proposal_session_ids_idx", skill_proposal.c.session_ids, postgresql_using="gin")
Index("skill_proposal_skill_ids_idx", skill_proposal.c.skill_ids, postgresql_using="gin")
Index(
    "skill_proposal_user_idx",
    skill_proposal.c.tenant,
    skill_proposal.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=skill_proposal.c.user_id.is_not(None),
)

skill_review = Table(
    "skill_review",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("skill_id", Text, nullable=False, info=no_content("a random id")),
    Column("pass", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "skill_id", "pass"),
    ForeignKeyConstraint(["tenant", "skill_id"], ["skill.tenant", "skill.id"], ondelete="CASCADE"),
)
