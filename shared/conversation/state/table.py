"""The tables of `basic_session`: one row per state store, and its keys, transcript and collections.

A writer takes its version from the row of the state store while it holds the row's lock. Therefore
writes are ordered, and two writers never get the same version. A version is the time of the write
in microseconds, or the last version plus one if the time did not advance. Hence a state store that
is deleted and created again does not repeat a version, and an old version that a client still has
can't match by accident.

`session_id` repeats the owner's id if the owner is a session. Its foreign key deletes the state
together with the session.
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

from shared.foundation.content import Subject, content, names, no_content
from shared.infra.postgres import metadata

state_store = Table(
    "state_store",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("owner_kind", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("owner_id", Text, nullable=False, info=names(Subject.AGENT, only={"owner_kind": "agent"})),
    Column(
        "session_id",
        Text,
        Computed("CASE WHEN owner_kind = 'session' THEN owner_id END", persisted=True),
        info=names(Subject.SESSION),
    ),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "owner_kind", "owner_id"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
)

# Deleting a session looks up its state store by this index.
Index("state_store_session_idx", state_store.c.tenant, state_store.c.session_id)


def _state_store_key() -> ForeignKeyConstraint:
    names = ("tenant", "owner_kind", "owner_id")
    return ForeignKeyConstraint(names, [f"state_store.{name}" for name in names], ondelete="CASCADE")


state_key = Table(
    "state_key",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("owner_kind", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("owner_id", Text, nullable=False, info=content()),
    Column("key", Text, nullable=False, info=content()),
    # JSON as text, because jsonb would lose the sign of a zero.
    Column("value", Text, nullable=False, info=content()),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "owner_kind", "owner_id", "key"),
    _state_store_key(),
)

Index("state_key_order_idx", *(state_key.c[name] for name in ("tenant", "owner_kind", "owner_id", "version")))

transcript_entry = Table(
    "transcript_entry",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("owner_kind", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("owner_id", Text, nullable=False, info=content()),
    Column("version", BigInteger, nullable=False),
    Column("role", Text, nullable=False, info=content()),
    Column("content", Text, nullable=False, info=content()),
    Column("metadata", JSONB, nullable=False, info=content()),
    PrimaryKeyConstraint("tenant", "owner_kind", "owner_id", "version"),
    _state_store_key(),
)

state_collection = Table(
    "state_collection",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("owner_kind", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("owner_id", Text, nullable=False, info=content()),
    Column("label", Text, nullable=False, info=content()),
    Column("type", Text, nullable=False, info=no_content("one of a fixed list")),
    # Whether the collection can be searched by similarity.
    Column("index", Boolean, nullable=False),
    # JSON as text; the binary data of a Vec or Tensor is in `data`.
    Column("value", Text, nullable=False, info=content()),
    Column("data", LargeBinary, info=content()),
    Column("size_bytes", Integer, nullable=False),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "owner_kind", "owner_id", "label"),
    _state_store_key(),
)
