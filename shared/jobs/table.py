"""The tables of the durable queue.

Jobs have no content, are claimed across tenants and are deleted when they are complete.

`run_at` is both the schedule and the end of the lease: a claim sets it to the end of its lease, so the
job of a dead worker becomes due again by itself. `lease_token` is a fencing token: a worker may record
an outcome only while the job has the token of the worker's claim.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from shared.infra.postgres import metadata

job = Table(
    "job",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("record_id", Text, nullable=False),
    Column("pipeline", Text, nullable=False),
    # 0 in pipelines without index generations.
    Column("generation", Integer, nullable=False, server_default=text("0")),
    Column("stage", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("backfill", Boolean, nullable=False, server_default=text("false")),
    Column("run_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # When a task for this job was last sent, for stages in which each job has a task of its own.
    Column("sent_at", DateTime(timezone=True)),
    Column("lease_token", Uuid(as_uuid=False)),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    # A text for people; programs read `reason_code`, a `ReasonCode`. Both are set, or both are NULL.
    Column("last_error", Text),
    Column("reason_code", Text),
    Column("dead_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # The W3C Trace Context of the request that enqueued the job; the work for the job continues that trace.
    Column("traceparent", Text),
    UniqueConstraint("tenant", "kind", "record_id", "pipeline", "generation"),
)

Index(
    "job_due_idx",
    job.c.stage,
    job.c.backfill,
    job.c.tenant,
    job.c.run_at,
    postgresql_where=job.c.dead_at.is_(None),
)
Index(
    "job_sent_idx",
    job.c.stage,
    postgresql_where=text("stage = 'dream_pass' AND (lease_token IS NOT NULL OR sent_at IS NOT NULL)"),
)
Index("job_generation_idx", job.c.generation, postgresql_where=job.c.generation > 0)

fleet_counter = Table(
    "fleet_counter",
    metadata,
    Column("name", Text, primary_key=True),
    Column("labels", Text, primary_key=True, server_default=text("''")),
    Column("value", Double, nullable=False, server_default=text("0")),
)
"""Counters of all processes together, for `/metrics`."""

periodic_run = Table(
    "periodic_run",
    metadata,
    Column("task", Text, primary_key=True),
    Column("last_run_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
"""When each periodic task last ran, so that two Celery beats do not run it twice."""

model_pause = Table(
    "model_pause",
    metadata,
    Column("stage", Text, primary_key=True),
    # A digest of the address, which may have a password in it.
    Column("endpoint", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("reason_code", Text, primary_key=True),
    Column("since", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("next_probe_at", DateTime(timezone=True), nullable=False),
    # Digests of the settings of the processes that were refused: other settings are tried at once.
    Column("refused_settings", ARRAY(Text), nullable=False),
)
"""The stages that wait until somebody changes the key, the name or the quota of their model."""
