"""The table of erasures: the receipts of users and agents that were erased, without their names."""

from sqlalchemy import Column, DateTime, Index, LargeBinary, PrimaryKeyConstraint, Table, Text, func, text
from sqlalchemy.dialects.postgresql import JSONB

from shared.foundation.content import no_content
from shared.infra.postgres import metadata

erasure = Table(
    "erasure",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("subject", Text, nullable=False, info=no_content("`user` or `agent`")),
    Column("digest", LargeBinary, nullable=False, info=no_content("a keyed digest of who was erased")),
    # Who is erased, only until Postgres is done: the rest is removed by ids.
    Column("subject_id", Text, info=no_content("an id, cleared when Postgres is done")),
    Column(
        "counts",
        JSONB,
        nullable=False,
        server_default=text("'{}'"),
        info=no_content("numbers by kind of record"),
    ),
    # When this was last asked for. A repeated request that finds nothing answers the same receipt.
    Column("requested_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "id"),
)

Index("erasure_subject_idx", erasure.c.tenant, erasure.c.digest, erasure.c.requested_at.desc())
