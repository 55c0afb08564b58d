"""The tables of index generations and of the embedding cache.

A generation is one Qdrant collection and the model of its vectors. A generation that is `building` is
written but not read. The `live` one is read and written. A `retiring` one is written for a little longer,
because some readers still use its name, and then dropped.
"""

from sqlalchemy import (
    Column,
    DateTime,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)

from shared.infra.postgres import metadata

index_generation = Table(
    "index_generation",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("collection", Text, nullable=False, unique=True),
    Column("state", Text, nullable=False),
    Column("model", Text),
    Column("dimension", Integer),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("retired_at", DateTime(timezone=True)),
    # The cosine that unrelated records rarely reach, and the number of points when it was learnt.
    Column("cosine_floor", Double),
    Column("floor_points", Integer, nullable=False, server_default=text("0")),
)

Index(
    "index_generation_live_idx",
    index_generation.c.kind,
    unique=True,
    postgresql_where=index_generation.c.state == "live",
)

embedding_cache = Table(
    "embedding_cache",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("used_at", DateTime(timezone=True), nullable=False, server_default=func.now(), index=True),
    PrimaryKeyConstraint("tenant", "model", "digest"),
)
