"""Tables of what dream runs have changed in graphs, and of the memories whose facts were extracted."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from shared.foundation.content import Subject, content, names, names_and_clears, no_content
from shared.infra.postgres import metadata

dream_graph_change = Table(
    "dream_graph_change",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("run_id", Text, nullable=False, info=no_content("a random id")),
    Column("pass", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("action", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("record", Text, nullable=False, info=no_content("`entity` or `triple`")),
    Column(
        "record_id",
        Text,
        nullable=False,
        info=names_and_clears(Subject.ENTITY, Subject.TRIPLE, clears=("before", "after")),
    ),
    Column("reason", Text, info=no_content("one of a fixed list")),
    # What of the record the change has replaced, and by what: undo takes back what nobody has changed since.
    Column("before", JSONB(none_as_null=True), info=content()),
    Column("after", JSONB(none_as_null=True), info=content()),
    ForeignKeyConstraint(["tenant", "run_id"], ["dream_run.tenant", "dream_run.id"], ondelete="CASCADE"),
)
Index(
    "dream_graph_change_run_idx",
    dream_graph_change.c.tenant,
    dream_graph_change.c.run_id,
    dream_graph_change.c.id,
)
Index("dream_graph_change_record_idx", dream_graph_change.c.tenant, dream_graph_change.c.record_id)

# The version of each memory whose entities and triples were extracted.
dream_extracted_memory = Table(
    "dream_extracted_memory",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("memory_id", Text, nullable=False, info=names(Subject.MEMORY)),
    Column("content_version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "memory_id"),
    ForeignKeyConstraint(["tenant", "memory_id"], ["memory.tenant", "memory.id"], ondelete="CASCADE"),
)
