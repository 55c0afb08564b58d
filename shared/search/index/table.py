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

from shared.foundation.content import no_content
from shared.infra.postgres import metadata

index_generation = Table(
    "index_generation",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("kind", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("collection", Text, nullable=False, unique=True, info=no_content("a name that Loci made")),
    Column("state", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("model", Text, info=no_content("the name of a model")),
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
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("model", Text, nullable=False, info=no_content("the name of a model")),
    Column(
        "digest",
        LargeBinary,
        nullable=False,
        info=no_content("deletions delete the rows of the texts that they delete"),
    ),
    Column(
        "vector",
        LargeBinary,
        nullable=False,
        info=no_content("deletions delete the rows of the texts that they delete"),
    ),
    Column("used_at", DateTime(timezone=True), nullable=False, server_default=func.now(), index=True),
    PrimaryKeyConstraint("tenant", "model", "digest"),
)
