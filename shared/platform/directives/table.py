"""The directives that tenants have set, every version of them."""

from sqlalchemy import Column, DateTime, Integer, PrimaryKeyConstraint, Table, Text, func

from shared.infra.postgres import metadata

directive = Table(
    "directive",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False),
    # By the wall clock: two transactions that wait for each other must not swap their times.
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("actor", Text, nullable=False),
    PrimaryKeyConstraint("tenant", "name", "version"),
)
