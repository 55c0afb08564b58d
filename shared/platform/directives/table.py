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
    # The time of the statement, not of the transaction: if one transaction waited for another, its
    # version must have the later time.
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("actor", Text, nullable=False),
    PrimaryKeyConstraint("tenant", "name", "version"),
)
