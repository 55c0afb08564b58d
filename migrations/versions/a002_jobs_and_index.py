"""Create the queue of jobs, the counters of the fleet, and what describes the search index.

`job` is readable across tenants, because it has no content. Five things have no tenant: counters,
the last runs of periodic tasks, paused models, index generations and the function `job_backlog`. An
autoscaler's login may call that function and can read no table: it learns one number, and no tenant's name.
"""

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    Identity,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from migrations import row_level_security

revision = "a002"
down_revision = "a001"
branch_labels = None
depends_on = None

_WITHOUT_TENANT = ("fleet_counter", "periodic_run", "model_pause", "index_generation")


def upgrade() -> None:
    """Apply this migration."""
    _create_job()
    _create_counters_and_periodic_runs()
    _create_model_pause()
    _create_index_generation()
    _create_embedding_cache()
    row_level_security.secure("job", fleet=True)
    row_level_security.secure("embedding_cache")
    for table in _WITHOUT_TENANT:
        row_level_security.grant(table)
    _create_backlog_function()


def downgrade() -> None:
    """Revert this migration."""
    op.execute("DROP FUNCTION job_backlog(text[])")
    for table in ("embedding_cache", *reversed(_WITHOUT_TENANT), "job"):
        op.drop_table(table)


def _create_job() -> None:
    op.create_table(
        "job",
        Column("id", BigInteger, Identity(always=True), primary_key=True),
        Column("tenant", Text, nullable=False),
        Column("kind", Text, nullable=False),
        Column("record_id", Text, nullable=False),
        Column("pipeline", Text, nullable=False),
        Column("generation", Integer, nullable=False, server_default=text("0")),
        Column("stage", Text, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("backfill", Boolean, nullable=False, server_default=text("false")),
        Column("run_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("sent_at", DateTime(timezone=True)),
        Column("lease_token", Uuid(as_uuid=False)),
        Column("attempts", Integer, nullable=False, server_default=text("0")),
        Column("last_error", Text),
        Column("reason_code", Text),
        Column("dead_at", DateTime(timezone=True)),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("traceparent", Text),
        UniqueConstraint("tenant", "kind", "record_id", "pipeline", "generation"),
    )
    due = ["stage", "backfill", "tenant", "run_at"]
    op.create_index("job_due_idx", "job", due, postgresql_where=text("dead_at IS NULL"))
    op.create_index(
        "job_sent_idx",
        "job",
        ["stage"],
        postgresql_where=text("stage = 'dream_pass' AND (lease_token IS NOT NULL OR sent_at IS NOT NULL)"),
    )
    op.create_index("job_generation_idx", "job", ["generation"], postgresql_where=text("generation > 0"))


def _create_backlog_function() -> None:
    """Create the function that counts the jobs of some stages that are due or leased, over all tenants."""
    op.execute("CREATE POLICY backlog ON job FOR SELECT TO CURRENT_USER USING (true)")
    op.execute(
        """
        CREATE FUNCTION job_backlog(stages text[]) RETURNS bigint
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
        AS $$
            SELECT count(*) FROM job
            WHERE stage = ANY (stages) AND dead_at IS NULL AND (run_at <= now() OR lease_token IS NOT NULL)
        $$
        """
    )
    op.execute("REVOKE ALL ON FUNCTION job_backlog(text[]) FROM PUBLIC")
    op.execute(
        """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'loci_scaler') THEN
                GRANT EXECUTE ON FUNCTION job_backlog(text[]) TO loci_scaler;
            END IF;
        END $$
        """
    )


def _create_counters_and_periodic_runs() -> None:
    op.create_table(
        "fleet_counter",
        Column("name", Text, primary_key=True),
        Column("labels", Text, primary_key=True, server_default=text("''")),
        Column("value", Double, nullable=False, server_default=text("0")),
    )
    op.create_table(
        "periodic_run",
        Column("task", Text, primary_key=True),
        Column("last_run_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
    )


def _create_model_pause() -> None:
    op.create_table(
        "model_pause",
        Column("stage", Text, primary_key=True),
        Column("endpoint", Text, primary_key=True),
        Column("model", Text, primary_key=True),
        Column("reason_code", Text, primary_key=True),
        Column("since", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("next_probe_at", DateTime(timezone=True), nullable=False),
        Column("refused_settings", ARRAY(Text), nullable=False),
    )


def _create_index_generation() -> None:
    op.create_table(
        "index_generation",
        Column("id", Integer, Identity(always=True), primary_key=True),
        Column("kind", Text, nullable=False),
        Column("collection", Text, nullable=False, unique=True),
        Column("state", Text, nullable=False),
        Column("model", Text),
        Column("dimension", Integer),
        Column("created_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        Column("retired_at", DateTime(timezone=True)),
        Column("cosine_floor", Double),
        Column("floor_points", Integer, nullable=False, server_default=text("0")),
    )
    op.create_index(
        "index_generation_live_idx",
        "index_generation",
        ["kind"],
        unique=True,
        postgresql_where=text("state = 'live'"),
    )


def _create_embedding_cache() -> None:
    op.create_table(
        "embedding_cache",
        Column("tenant", Text, nullable=False),
        Column("model", Text, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        Column("vector", LargeBinary, nullable=False),
        Column("used_at", DateTime(timezone=True), nullable=False, server_default=text("now()")),
        PrimaryKeyConstraint("tenant", "model", "digest"),
    )
    op.create_index("embedding_cache_used_at_idx", "embedding_cache", ["used_at"])
