"""Work rows: content-free, claimed across tenants, deleted when done.

`run_at` is both schedule and lease: a claim moves it past the lease's end, so a row that a
dead worker held is due again by itself. `token` fences: only its holder may record.
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

from shared.infra.postgres import metadata

job = Table(
    "job",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("record_id", Text, nullable=False),
    Column("pipeline", Text, nullable=False),
    # 0 on tracks that have nothing to do with an index generation.
    Column("generation", Integer, nullable=False, server_default=text("0")),
    Column("stage", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("backfill", Boolean, nullable=False, server_default=text("false")),
    Column("run_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("lease_token", Uuid(as_uuid=False)),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    # For people; what decides by the reason reads the `ReasonCode` beside it. Both are set or both are NULL.
    Column("last_error", Text),
    Column("reason_code", Text),
    Column("dead_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    # W3C Trace Context of the request that made it due: what is done for the row goes on with its trace.
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
Index("job_generation_idx", job.c.generation, postgresql_where=job.c.generation > 0)

fleet_counter = Table(
    "fleet_counter",
    metadata,
    Column("name", Text, primary_key=True),
    Column("labels", Text, primary_key=True, server_default=text("''")),
    Column("value", Double, nullable=False, server_default=text("0")),
)
"""Counters that outlive a process, for `/metrics`: repairs of the sweep, endings of work."""

periodic_run = Table(
    "periodic_run",
    metadata,
    Column("task", Text, primary_key=True),
    Column("last_run_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
"""When a ring of the clock was last followed, so that two clocks do nothing twice."""
