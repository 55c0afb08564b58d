"""Create the role of the processes, and what a tenant has besides memory and conversations.

These are tenants and their API keys, stored responses for idempotent requests, directives, and
agents with their texts and files.

Constraints without a name are named by the convention of `shared.infra.postgres.metadata`.
"""

from alembic import op
from sqlalchemy import (
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from migrations import row_level_security

revision = "a001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = (
    "tenant",
    "tenant_secret",
    "api_key",
    "idempotent_response",
    "directive",
    "agent",
    "agent_text",
    "agent_file",
)


def upgrade() -> None:
    """Apply this migration."""
    role = row_level_security.role()
    _create_role(role)
    _create_backup_role()
    _create_tenants()
    _create_api_key()
    _create_idempotent_response()
    _create_directive()
    _create_agent()
    _create_agent_texts_and_files()
    for table in _TABLES:
        row_level_security.secure(table, fleet=table == "tenant")
    _create_key_lookup(role)


def downgrade() -> None:
    """Revert this migration. The role stays: other databases of the server may use it."""
    op.execute("DROP FUNCTION find_api_key(text)")
    for table in reversed(_TABLES):
        op.drop_table(table)


def _create_role(role: str) -> None:
    """Create the role that processes act as: it owns nothing and does not bypass any policy."""
    op.execute(
        f"""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
                CREATE ROLE {role} NOLOGIN NOBYPASSRLS;
            END IF;
            EXECUTE format('GRANT {role} TO %I', current_user);
        EXCEPTION WHEN insufficient_privilege THEN
            -- An administrator has created and granted the role; if not, the first connection fails.
            RAISE NOTICE 'this login may not create or grant the role {role}';
        END $$
        """
    )
    op.execute(f"GRANT USAGE ON SCHEMA public TO {role}")
    op.execute(f"GRANT SELECT ON alembic_version TO {role}")


def _create_backup_role() -> None:
    """Create the role that may read all rows, for `pg_dump`, if this login may; else an administrator has."""
    op.execute(
        f"""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{row_level_security.BACKUP_ROLE}') THEN
                CREATE ROLE {row_level_security.BACKUP_ROLE} NOLOGIN NOBYPASSRLS;
            END IF;
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE NOTICE 'there is no role {row_level_security.BACKUP_ROLE}: pg_dump needs a superuser';
        END $$
        """
    )
    row_level_security.let_backup_read("alembic_version")


def _create_tenants() -> None:
    op.create_table(
        "tenant",
        Column("tenant", Text, primary_key=True),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        # A transaction that names '*' reads across tenants; no tenant may have that name.
        CheckConstraint("tenant ~ '^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$'", name="name"),
    )
    op.create_table(
        "tenant_secret",
        Column("tenant", Text, ForeignKey("tenant.tenant", ondelete="CASCADE"), primary_key=True),
        Column("secret", LargeBinary, nullable=False),
    )


def _create_api_key() -> None:
    op.create_table(
        "api_key",
        Column("id", Text, primary_key=True),
        Column("tenant", Text, ForeignKey("tenant.tenant", ondelete="CASCADE"), nullable=False),
        Column("digest", LargeBinary, nullable=False),
        Column("rights", ARRAY(Text), nullable=False),
        Column("agent_id", Text),
        Column("user_id", Text),
        Column("namespace", Text),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("expires_at", DateTime(timezone=True)),
        Column("revoked_at", DateTime(timezone=True)),
    )
    op.create_index("api_key_tenant_idx", "api_key", ["tenant"])


def _create_key_lookup(role: str) -> None:
    """Create the function that finds a key before its tenant is known, one row at a time."""
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


def _create_idempotent_response() -> None:
    op.create_table(
        "idempotent_response",
        Column("tenant", Text, primary_key=True),
        Column("route", Text, primary_key=True),
        Column("key", Text, primary_key=True),
        Column("request_digest", LargeBinary, nullable=False),
        Column("body", JSONB),
        Column("record_ids", ARRAY(Text), nullable=False, server_default=text("'{}'")),
        Column("user_id", Text),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
    )
    op.create_index("idempotent_response_created_at_idx", "idempotent_response", ["created_at"])
    op.create_index(
        "idempotent_response_record_ids_idx", "idempotent_response", ["record_ids"], postgresql_using="gin"
    )


def _create_directive() -> None:
    op.create_table(
        "directive",
        Column("tenant", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("version", Integer, nullable=False),
        Column("text", Text, nullable=False),
        # clock_timestamp() instead of now(), which is the start of the transaction: of two transactions, the
        # one that had to wait must not have the earlier time.
        Column(
            "created_at", DateTime(timezone=True), nullable=False, server_default=text("clock_timestamp()")
        ),
        Column("actor", Text, nullable=False),
        PrimaryKeyConstraint("tenant", "name", "version"),
    )


def _create_agent() -> None:
    op.create_table(
        "agent",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("public_key", Text),
        Column("document", Text),
        Column("identity", Text),
        Column("store_types", ARRAY(Text)),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("updated_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "id"),
    )


def _create_agent_texts_and_files() -> None:
    op.create_table(
        "agent_text",
        Column("tenant", Text, nullable=False),
        Column("id", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("metadata", JSONB, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "id"),
        ForeignKeyConstraint(["tenant", "agent_id"], ["agent.tenant", "agent.id"], ondelete="CASCADE"),
    )
    op.create_index("agent_text_order_idx", "agent_text", ["tenant", "agent_id", "created_at", "id"])
    op.create_table(
        "agent_file",
        Column("tenant", Text, nullable=False),
        Column("agent_id", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("content", LargeBinary, nullable=False),
        Column("content_type", Text, nullable=False),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("updated_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "agent_id", "name"),
        ForeignKeyConstraint(["tenant", "agent_id"], ["agent.tenant", "agent.id"], ondelete="CASCADE"),
    )
