"""The first schema: tenants and keys, entries, sessions and turns, work, the index's generations.

Row-level security is here from the first step: every table with a tenant is closed to a
transaction that does not name one.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations import row_level_security

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


_TENANT_TABLES = (
    "tenant",
    "tenant_secret",
    "api_key",
    "idempotent_answer",
    "entry",
    "entry_history",
    "tombstone",
    "session",
    "turn",
    "recall_mark",
    "cached_vector",
    "work",
)
# Content-free tables that one transaction may read across tenants, by naming the fleet.
_FLEET_TABLES = ("tenant", "work")


def upgrade() -> None:
    """Apply this step."""
    _create_tables()
    role = row_level_security.role()
    _create_role(role)
    for table in _TENANT_TABLES:
        row_level_security.secure(table, fleet=table in _FLEET_TABLES)
    _create_key_lookup(role)


def _create_role(role: str) -> None:
    """Make the role that processes act as: it owns nothing and passes no policy by."""
    op.execute(
        f"""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
                CREATE ROLE {role} NOLOGIN NOBYPASSRLS;
            END IF;
            EXECUTE format('GRANT {role} TO %I', current_user);
        EXCEPTION WHEN insufficient_privilege THEN
            -- Somebody else made the role and granted it; if not, the first connection says so.
            RAISE NOTICE 'role {role} is not ours to create or grant';
        END $$
        """
    )
    op.execute(f"GRANT USAGE ON SCHEMA public TO {role}")
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    op.execute(f"REVOKE ALL ON alembic_version FROM {role}")
    op.execute(f"GRANT SELECT ON alembic_version TO {role}")


def _create_key_lookup(role: str) -> None:
    """Let a key be found before its tenant is known: by one function, one row at a time."""
    op.execute("CREATE POLICY lookup ON api_key FOR SELECT TO CURRENT_USER USING (true)")
    op.execute(
        """
        CREATE FUNCTION find_api_key(key_id text) RETURNS SETOF api_key
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
        AS 'SELECT * FROM api_key WHERE id = key_id'
        """
    )
    op.execute("REVOKE ALL ON FUNCTION find_api_key(text) FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION find_api_key(text) TO {role}")


def _create_tables() -> None:
    op.create_table(
        "cached_vector",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "model", "digest", name=op.f("cached_vector_pkey")),
    )
    op.create_index(op.f("cached_vector_used_at_idx"), "cached_vector", ["used_at"], unique=False)
    op.create_table(
        "entry",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("category", sa.Text(), nullable=True),
        sa.Column("tags", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column(
            "metadata",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("importance", sa.Double(), server_default=sa.text("0.5"), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("content_version", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("reinforcement_count", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "sources", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'"), nullable=False
        ),
        sa.Column(
            "source_session",
            sa.Text(),
            sa.Computed("sources -> 0 ->> 'session_id'", persisted=True),
            nullable=True,
        ),
        sa.Column(
            "source_seq",
            sa.Integer(),
            sa.Computed("(sources -> 0 ->> 'seq')::integer", persisted=True),
            nullable=True,
        ),
        sa.Column("superseded_by", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("derived_from", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "last_seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("archived_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("archive_reason", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("words", postgresql.TSVECTOR(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("entry_pkey")),
    )
    op.create_index(
        "entry_archived_idx",
        "entry",
        ["archived_at"],
        unique=False,
        postgresql_where=sa.text("archived_at IS NOT NULL"),
    )
    op.create_index("entry_derived_from_idx", "entry", ["derived_from"], unique=False, postgresql_using="gin")
    op.create_index(
        "entry_live_fact_idx",
        "entry",
        ["tenant", "agent_id", "user_id", "fingerprint"],
        unique=True,
        postgresql_where=sa.text("archived_at IS NULL"),
        postgresql_nulls_not_distinct=True,
    )
    op.create_index(
        "entry_newest_idx",
        "entry",
        ["tenant", "agent_id", sa.literal_column("last_seen_at DESC"), "id"],
        unique=False,
    )
    op.create_index(
        "entry_source_idx",
        "entry",
        ["tenant", "source_session", "source_seq"],
        unique=False,
        postgresql_where=sa.text("source_session IS NOT NULL"),
    )
    op.create_index("entry_words_idx", "entry", ["words"], unique=False, postgresql_using="gin")
    op.create_table(
        "entry_history",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("before", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("after", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("entry_history_pkey")),
    )
    op.create_index("entry_history_entry_idx", "entry_history", ["tenant", "entry_id", "id"], unique=False)
    op.create_table(
        "idempotent_answer",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request_digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("refs", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "route", "key", name=op.f("idempotent_answer_pkey")),
    )
    op.create_index(
        op.f("idempotent_answer_created_at_idx"), "idempotent_answer", ["created_at"], unique=False
    )
    op.create_index(
        "idempotent_answer_refs_idx", "idempotent_answer", ["refs"], unique=False, postgresql_using="gin"
    )
    op.create_table(
        "index_generation",
        sa.Column("id", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("dimension", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("index_generation_pkey")),
        sa.UniqueConstraint("collection", name=op.f("index_generation_collection_key")),
    )
    op.create_index(
        "index_generation_live_idx",
        "index_generation",
        ["kind"],
        unique=True,
        postgresql_where=sa.text("state = 'live'"),
    )
    op.create_table(
        "session",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("store_types", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("last_agent", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ttl_seconds", sa.Integer(), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_seq", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_turn_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("session_pkey")),
    )
    op.create_index(
        "session_expiry_idx",
        "session",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("expires_at IS NOT NULL"),
    )
    op.create_index("session_namespace_idx", "session", ["tenant", "namespace"], unique=False)
    op.create_index(
        "session_newest_idx", "session", ["tenant", sa.literal_column("created_at DESC"), "id"], unique=False
    )
    op.create_table(
        "tally",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("total", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("name", "label", name=op.f("tally_pkey")),
    )
    op.create_table(
        "tenant",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("tenant ~ '^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$'", name=op.f("tenant_name_check")),
        sa.PrimaryKeyConstraint("tenant", name=op.f("tenant_pkey")),
    )
    op.create_table(
        "tombstone",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("tombstone_pkey")),
        sa.UniqueConstraint(
            "tenant",
            "agent_id",
            "user_id",
            "digest",
            name=op.f("tombstone_tenant_agent_id_user_id_digest_key"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_table(
        "work",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("track", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("backfill", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("run_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("token", sa.Uuid(as_uuid=False), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("reason_code", sa.Text(), nullable=True),
        sa.Column("dead_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("work_pkey")),
        sa.UniqueConstraint(
            "tenant",
            "kind",
            "ref",
            "track",
            "generation",
            name=op.f("work_tenant_kind_ref_track_generation_key"),
        ),
    )
    op.create_index(
        "work_due_idx",
        "work",
        ["stage", "backfill", "tenant", "run_at"],
        unique=False,
        postgresql_where=sa.text("dead_at IS NULL"),
    )
    op.create_index(
        "work_generation_idx",
        "work",
        ["generation"],
        unique=False,
        postgresql_where=sa.text("generation > 0"),
    )
    op.create_table(
        "api_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("rights", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=True),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("namespace", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.tenant"], name=op.f("api_key_tenant_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("api_key_pkey")),
    )
    op.create_index(op.f("api_key_tenant_idx"), "api_key", ["tenant"], unique=False)
    op.create_table(
        "recall_mark",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("content_version", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "session_id"],
            ["session.tenant", "session.id"],
            name=op.f("recall_mark_tenant_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "session_id", "entry_id", name=op.f("recall_mark_pkey")),
    )
    op.create_table(
        "tenant_secret",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant"], ["tenant.tenant"], name=op.f("tenant_secret_tenant_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant", name=op.f("tenant_secret_pkey")),
    )
    op.create_table(
        "turn",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("speaker", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column(
            "metadata",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column(
            "recalled",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'"),
            nullable=False,
        ),
        sa.Column("recalled_ids", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("words", postgresql.TSVECTOR(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "session_id"],
            ["session.tenant", "session.id"],
            name=op.f("turn_tenant_session_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant", "session_id", "seq", name=op.f("turn_pkey")),
    )
    op.create_index("turn_recalled_ids_idx", "turn", ["recalled_ids"], unique=False, postgresql_using="gin")
    op.create_index("turn_received_idx", "turn", ["received_at"], unique=False)
    op.create_index("turn_words_idx", "turn", ["words"], unique=False, postgresql_using="gin")


def downgrade() -> None:
    """Take this step back."""
    op.execute("DROP FUNCTION find_api_key(text)")
    op.drop_index("turn_words_idx", table_name="turn", postgresql_using="gin")
    op.drop_index("turn_received_idx", table_name="turn")
    op.drop_index("turn_recalled_ids_idx", table_name="turn", postgresql_using="gin")
    op.drop_table("turn")
    op.drop_table("tenant_secret")
    op.drop_table("recall_mark")
    op.drop_index(op.f("api_key_tenant_idx"), table_name="api_key")
    op.drop_table("api_key")
    op.drop_index("work_generation_idx", table_name="work", postgresql_where=sa.text("generation > 0"))
    op.drop_index("work_due_idx", table_name="work", postgresql_where=sa.text("dead_at IS NULL"))
    op.drop_table("work")
    op.drop_table("tombstone")
    op.drop_table("tenant")
    op.drop_table("tally")
    op.drop_index("session_newest_idx", table_name="session")
    op.drop_index("session_namespace_idx", table_name="session")
    op.drop_index(
        "session_expiry_idx", table_name="session", postgresql_where=sa.text("expires_at IS NOT NULL")
    )
    op.drop_table("session")
    op.drop_index(
        "index_generation_live_idx", table_name="index_generation", postgresql_where=sa.text("state = 'live'")
    )
    op.drop_table("index_generation")
    op.drop_index("idempotent_answer_refs_idx", table_name="idempotent_answer", postgresql_using="gin")
    op.drop_index(op.f("idempotent_answer_created_at_idx"), table_name="idempotent_answer")
    op.drop_table("idempotent_answer")
    op.drop_index("entry_history_entry_idx", table_name="entry_history")
    op.drop_table("entry_history")
    op.drop_index("entry_words_idx", table_name="entry", postgresql_using="gin")
    op.drop_index("entry_newest_idx", table_name="entry")
    op.drop_index(
        "entry_live_fact_idx",
        table_name="entry",
        postgresql_where=sa.text("archived_at IS NULL"),
        postgresql_nulls_not_distinct=True,
    )
    op.drop_index("entry_derived_from_idx", table_name="entry", postgresql_using="gin")
    op.drop_index(
        "entry_archived_idx", table_name="entry", postgresql_where=sa.text("archived_at IS NOT NULL")
    )
    op.drop_table("entry")
    op.drop_index(op.f("cached_vector_used_at_idx"), table_name="cached_vector")
    op.drop_table("cached_vector")
