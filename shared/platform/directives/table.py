"""The table of directives that tenants have set, with every version of them."""

from sqlalchemy import Column, DateTime, Integer, PrimaryKeyConstraint, Table, Text, func

from shared.infra.postgres import metadata

directive = Table(
    "directive",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False),
    # The wall clock, not the start of the transaction: of two transactions of which one waited for
    # the other, the later must have the later time.
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("actor", Text, nullable=False),
    PrimaryKeyConstraint("tenant", "name", "version"),
)
