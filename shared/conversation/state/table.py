"""What `basic_session` keeps: a row for each store, and its keys, transcript and collections.

The row of a store gives out the numbers of its writes under its own lock, as a session's row does
for turns: the order of writes is known, and two writers never both believe that they were first.
A number is the time of the write in microseconds, or one more than the last where the clock stood
still or went back. So it also never comes again when a store is dropped and made anew, and a
version that somebody still holds cannot fit by accident.

`session_id` repeats the owner where it is a session: what a session holds goes with it.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Computed,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from shared.infra.postgres import metadata

state_store = Table(
    "state_store",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("owner_kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column(
        "session_id", Text, Computed("CASE WHEN owner_kind = 'session' THEN owner_id END", persisted=True)
    ),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "owner_kind", "owner_id"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
)

# For the cascade.
Index("state_store_session_idx", state_store.c.tenant, state_store.c.session_id)


def _of_store() -> ForeignKeyConstraint:
    here, there = (
        ["tenant", "owner_kind", "owner_id"],
        ["state_store.tenant", "state_store.owner_kind", "state_store.owner_id"],
    )
    return ForeignKeyConstraint(here, there, ondelete="CASCADE")


state_key = Table(
    "state_key",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("owner_kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    # JSON as text: jsonb would lose the sign of a zero.
    Column("value", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "owner_kind", "owner_id", "key"),
    _of_store(),
)

Index("state_key_order_idx", *(state_key.c[name] for name in ("tenant", "owner_kind", "owner_id", "version")))

transcript_entry = Table(
    "transcript_entry",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("owner_kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("role", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("metadata", JSONB, nullable=False),
    PrimaryKeyConstraint("tenant", "owner_kind", "owner_id", "version"),
    _of_store(),
)

state_collection = Table(
    "state_collection",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("owner_kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("type", Text, nullable=False),
    # Whether it is searched by similarity.
    Column("index", Boolean, nullable=False),
    # JSON as text, and what is bytes by nature as bytes.
    Column("value", Text, nullable=False),
    Column("data", LargeBinary),
    Column("size_bytes", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "owner_kind", "owner_id", "label"),
    _of_store(),
)
