"""The table of directives that tenants have set, with every version of them."""

from sqlalchemy import Column, DateTime, Integer, PrimaryKeyConstraint, Table, Text, func

from shared.foundation.content import no_content
from shared.infra.postgres import metadata

directive = Table(
    "directive",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("name", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("version", Integer, nullable=False),
    Column("text", Text, nullable=False, info=no_content("rules of an administrator, who sets new ones")),
    # The time of the statement, not of the transaction: if one transaction waited for another, its
    # version must have the later time.
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("actor", Text, nullable=False, info=no_content("the id of a key")),
    PrimaryKeyConstraint("tenant", "name", "version"),
)
