"""The tables of proposals and of their evidence."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.foundation.content import (
    Subject,
    content,
    names,
    names_collected,
    names_turns,
    no_content,
)
from shared.infra.postgres import BY_CHARACTERS, metadata

proposal = Table(
    "proposal",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.PROPOSAL)),
    Column("agent_id", Text, nullable=False, info=names_collected(Subject.AGENT)),
    Column("user_id", Text, info=names_collected(Subject.USER)),
    Column("kind", Text, nullable=False, info=no_content("the name of what proposes")),
    Column("text", Text, nullable=False, info=content()),
    # SHA-256 of the normalised text.
    Column("fingerprint", LargeBinary, nullable=False, info=content()),
    # The other columns of the memory that it would become.
    Column("row", JSONB, nullable=False, info=content()),
    # The memory that it would end, '' for none.
    Column("closes", Text, nullable=False, info=no_content("a random id")),
    # The memories that it would archive.
    Column("replaces", ARRAY(Text), nullable=False, info=no_content("random ids")),
    # When each memory that it rests on, closes or replaces was last edited, by id: null is never.
    Column("edited_at", JSONB, nullable=False, info=no_content("random ids and times")),
    Column("signs", ARRAY(Text), nullable=False, info=no_content("names of signs")),
    # The users whose turns it rests on. An erasure of one of them takes it.
    Column("evidence_user_ids", ARRAY(Text), nullable=False, info=names_collected(Subject.USER)),
    # The items of evidence that it was made from. If there are fewer by now, nobody can approve it.
    Column("evidence_count", Integer, nullable=False),
    Column("state", Text, nullable=False, info=no_content("one of a fixed list")),
    # The judge that was asked last and left it undecided.
    Column("asked_judge", Text, info=no_content("the digest of an endpoint and a model")),
    Column("reason", Text, info=content()),
    Column("decided_by", Text, info=no_content("the id of a key, or `judge`")),
    Column("decided_at", DateTime(timezone=True)),
    Column("memory_id", Text, info=no_content("a random id")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    PrimaryKeyConstraint("tenant", "id"),
    CheckConstraint("state IN ('held', 'approved', 'refused', 'expired')", name="state"),
    CheckConstraint("(state = 'approved') = (memory_id IS NOT NULL)", name="memory"),
    CheckConstraint("(state = 'held') = (decided_at IS NULL)", name="decided"),
)

Index(
    "proposal_held_idx",
    proposal.c.tenant,
    proposal.c.agent_id,
    proposal.c.user_id,
    proposal.c.kind,
    proposal.c.fingerprint,
    proposal.c.closes,
    unique=True,
    postgresql_where=text("state = 'held'"),
    postgresql_nulls_not_distinct=True,
)
Index(
    "proposal_newest_idx",
    proposal.c.tenant,
    proposal.c.agent_id,
    proposal.c.created_at.desc(),
    proposal.c.id,
)
Index("proposal_evidence_user_ids_idx", proposal.c.evidence_user_ids, postgresql_using="gin")
Index(
    "proposal_user_idx",
    proposal.c.tenant,
    proposal.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=proposal.c.user_id.is_not(None),
)

# One turn or one memory. A proposal goes with the last of its evidence: a trigger deletes it.
proposal_evidence = Table(
    "proposal_evidence",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("proposal_id", Text, nullable=False, info=names(Subject.PROPOSAL)),
    Column("session_id", Text, info=names(Subject.SESSION)),
    Column("seq", Integer, info=names_turns(Subject.TURN, Subject.WITHDRAWN_TURN, first_seq="seq")),
    Column("memory_id", Text, info=names(Subject.MEMORY)),
    ForeignKeyConstraint(["tenant", "proposal_id"], ["proposal.tenant", "proposal.id"], ondelete="CASCADE"),
    UniqueConstraint(
        "tenant", "proposal_id", "session_id", "seq", "memory_id", postgresql_nulls_not_distinct=True
    ),
    CheckConstraint(
        "(memory_id IS NULL) = (session_id IS NOT NULL) AND (session_id IS NULL) = (seq IS NULL)", name="one"
    ),
)

Index(
    "proposal_evidence_turn_idx",
    proposal_evidence.c.tenant,
    proposal_evidence.c.session_id,
    proposal_evidence.c.seq,
)
Index("proposal_evidence_memory_idx", proposal_evidence.c.tenant, proposal_evidence.c.memory_id)
