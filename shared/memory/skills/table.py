"""The tables of skills, of their versions and files, and of their use.

A file is addressed by the SHA-256 of its bytes. It belongs to a scope, in which skills and versions name it
by its digest, so the same bytes are stored once. No other scope learns whether they exist.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TSVECTOR

from shared.foundation.content import Subject, content, names, names_collected, no_content
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import BY_CHARACTERS, metadata

skill = Table(
    "skill",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.SKILL)),
    Column("agent_id", Text, nullable=False, info=names_collected(Subject.AGENT)),
    # Without a user, it is that of all users of the agent who have none of their own under the name.
    Column("user_id", Text, info=names_collected(Subject.USER)),
    Column("name", Text, nullable=False, info=content()),
    Column("summary", Text, nullable=False, info=content()),
    Column("summary_origin", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("content", Text, nullable=False, info=content()),
    Column("see_also", ARRAY(Text), nullable=False, info=content()),
    # What a SKILL.md says besides the name: description, license, compatibility, metadata, allowed tools.
    Column("front_matter", JSONB, nullable=False, server_default=text("'{}'"), info=content()),
    # [{path, sha256, size_bytes}], ordered by path.
    Column("files", JSONB, nullable=False, server_default=text("'[]'"), info=content()),
    # Who wrote this version. Its `Origin` is in columns of its own, as that of every record.
    Column("origin", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("version", BigInteger, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True)),
    Column("last_used_at", DateTime(timezone=True)),
    # The version of which no model could write a summary: it is not asked again until a change.
    Column("unsummarised_version", BigInteger),
    Column("search_terms", TSVECTOR, nullable=False, info=content()),
    *origin_columns(),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "agent_id", "user_id", "name", postgresql_nulls_not_distinct=True),
    CheckConstraint("origin IN ('caller', 'import', 'dream')", name="origin"),
    CheckConstraint("summary_origin IN ('caller', 'content', 'model')", name="summary_origin"),
)

Index(
    "skill_user_idx",
    skill.c.tenant,
    skill.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=skill.c.user_id.is_not(None),
)
Index(
    "skill_summary_idx",
    skill.c.tenant,
    skill.c.id,
    postgresql_where=skill.c.summary_origin == "content",
)
Index("skill_search_terms_idx", skill.c.search_terms, postgresql_using="gin")

# Each write of a skill adds a version; the current one is among them.
skill_version = Table(
    "skill_version",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("skill_id", Text, nullable=False, info=no_content("a random id")),
    Column("version", BigInteger, nullable=False),
    Column("summary", Text, nullable=False, info=content()),
    Column("content", Text, nullable=False, info=content()),
    Column("see_also", ARRAY(Text), nullable=False, info=content()),
    Column("front_matter", JSONB, nullable=False, info=content()),
    Column("files", JSONB, nullable=False, info=content()),
    Column("origin", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("tenant", "skill_id", "version"),
    ForeignKeyConstraint(["tenant", "skill_id"], ["skill.tenant", "skill.id"], ondelete="CASCADE"),
)

skill_file = Table(
    "skill_file",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column(
        "id",
        Text,
        nullable=False,
        server_default=text("gen_random_uuid()::text"),
        info=no_content("a random id"),
    ),
    Column("agent_id", Text, nullable=False, info=names(Subject.AGENT)),
    Column("user_id", Text, info=names(Subject.USER)),
    Column("sha256", Text, nullable=False, info=content()),
    Column("content", LargeBinary, nullable=False, info=content()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "agent_id", "user_id", "sha256", postgresql_nulls_not_distinct=True),
)

Index(
    "skill_file_user_idx",
    skill_file.c.tenant,
    skill_file.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=skill_file.c.user_id.is_not(None),
)

# A use is a read by a caller, or the showing in a context.
skill_use = Table(
    "skill_use",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column(
        "id",
        Text,
        nullable=False,
        server_default=text("gen_random_uuid()::text"),
        info=no_content("a random id"),
    ),
    Column("skill_id", Text, nullable=False, info=no_content("a random id")),
    Column("session_id", Text, info=names(Subject.SESSION)),
    Column("used_by", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("tenant", "id"),
    ForeignKeyConstraint(["tenant", "skill_id"], ["skill.tenant", "skill.id"], ondelete="CASCADE"),
    CheckConstraint("used_by IN ('caller', 'context')", name="used_by"),
)

Index("skill_use_skill_idx", skill_use.c.tenant, skill_use.c.skill_id, skill_use.c.created_at)
Index(
    "skill_use_session_idx",
    skill_use.c.tenant,
    skill_use.c.session_id,
    postgresql_where=skill_use.c.session_id.is_not(None),
)
Index("skill_use_created_idx", skill_use.c.created_at)
