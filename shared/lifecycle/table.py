"""The table of erasures: receipts of what was erased or deleted by a filter, and of documents: no names."""

from sqlalchemy import Column, DateTime, Index, LargeBinary, PrimaryKeyConstraint, Table, Text, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.foundation.content import no_content
from shared.infra.postgres import metadata

erasure = Table(
    "erasure",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("a random id")),
    Column("subject", Text, nullable=False, info=no_content("`user`, `agent`, `memory` or `document`")),
    Column(
        "digest",
        LargeBinary,
        nullable=False,
        info=no_content("a keyed digest of who or what was erased"),
    ),
    # Of a deletion by a filter: the agent and the user whose bound keys may read the receipt.
    Column(
        "owner_digests",
        ARRAY(Text),
        nullable=False,
        server_default=text("'{}'"),
        info=no_content("keyed digests of an agent and a user"),
    ),
    # Who, or which filter, is erased, only until Postgres is done: the rest is removed by ids.
    Column("subject_id", Text, info=no_content("cleared when Postgres is done")),
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
