"""Tables of dream runs, their passes, what each pass changed, and what each pass has read.

The unique index `dream_run_active_idx` allows one running run per scope. `dream_change` is the diff
of a run; undo reads it.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.foundation.content import (
    Subject,
    content,
    names,
    names_and_clears,
    names_collected,
    names_turns,
    no_content,
)
from shared.infra.postgres import BY_CHARACTERS, metadata

dream_run = Table(
    "dream_run",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.DREAM_RUN)),
    Column("agent_id", Text, nullable=False, info=names_collected(Subject.AGENT)),
    Column("user_id", Text, info=names_collected(Subject.USER)),
    Column("state", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("dry_run", Boolean, nullable=False, server_default=text("false")),
    Column("actor", Text, nullable=False, info=no_content("the id of a key, or `schedule`")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    Column("finished_at", DateTime(timezone=True)),
    Column("undone_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("tenant", "id"),
)

Index(
    "dream_run_active_idx",
    dream_run.c.tenant,
    dream_run.c.agent_id,
    dream_run.c.user_id,
    unique=True,
    postgresql_where=dream_run.c.state == "running",
    postgresql_nulls_not_distinct=True,
)
Index("dream_run_newest_idx", dream_run.c.tenant, dream_run.c.created_at.desc(), dream_run.c.id)
Index(
    "dream_run_user_idx",
    dream_run.c.tenant,
    dream_run.c.user_id,
    postgresql_ops=BY_CHARACTERS,
    postgresql_where=dream_run.c.user_id.is_not(None),
)
Index(
    "dream_run_agent_idx",
    dream_run.c.tenant,
    dream_run.c.agent_id,
)

dream_pass = Table(
    "dream_pass",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("run_id", Text, nullable=False, info=no_content("a random id")),
    Column("name", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("position", Integer, nullable=False),
    Column("state", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("reason", Text, info=no_content("words of Loci")),
    # What the pass read: versions by memory id, or turns as session#seq.
    Column("inputs", JSONB, nullable=False, server_default=text("'{}'"), info=content()),
    # The records whose text `inputs`, `proposed` and `rejections` may repeat: memories, sessions and turns.
    Column(
        "record_ids",
        ARRAY(Text),
        nullable=False,
        server_default=text("'{}'"),
        info=names_and_clears(
            *(Subject.MEMORY, Subject.SESSION, Subject.TURN, Subject.WITHDRAWN_TURN, Subject.SKILL),
            clears=("inputs", "proposed", "rejections"),
        ),
    ),
    Column("directive", Text, info=no_content("the name and version of a directive")),
    Column("model", Text, info=no_content("the name of a model")),
    Column("input_tokens", Integer, nullable=False, server_default=text("0")),
    Column("output_tokens", Integer, nullable=False, server_default=text("0")),
    Column("cost_usd", Numeric),
    # What the model proposed, what was rejected and why, and the number of changes by action.
    Column("proposed", JSONB, info=content()),
    Column("rejections", JSONB, nullable=False, server_default=text("'[]'"), info=content()),
    Column(
        "applied", JSONB, nullable=False, server_default=text("'{}'"), info=no_content("numbers by action")
    ),
    Column("started_at", DateTime(timezone=True)),
    Column("finished_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("tenant", "run_id", "name"),
    ForeignKeyConstraint(["tenant", "run_id"], ["dream_run.tenant", "dream_run.id"], ondelete="CASCADE"),
)

Index("dream_pass_record_ids_idx", dream_pass.c.record_ids, postgresql_using="gin")

dream_change = Table(
    "dream_change",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("run_id", Text, nullable=False, info=no_content("a random id")),
    Column("pass", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("action", Text, nullable=False, info=no_content("one of a fixed list")),
    Column(
        "entry_id", Text, nullable=False, info=names_and_clears(Subject.MEMORY, clears=("added_sources",))
    ),
    # The version after the change. Undo leaves a memory alone that has another version by then.
    Column("version", BigInteger, nullable=False),
    Column("reason", Text, info=no_content("one of a fixed list")),
    Column("previous_state", Text, info=no_content("one of a fixed list")),
    # Until when a memory that was closed had been valid; null is open.
    Column("previous_valid_until", DateTime(timezone=True)),
    # How often the memory had been observed after the change, and how many of these the run added.
    Column("reinforcement_count", Integer),
    Column("added_count", Integer, nullable=False, server_default=text("0")),
    # The sources that a reinforcement has added to the memory; null if it has added none.
    Column("added_sources", JSONB(none_as_null=True), info=content()),
    Column(
        "successors", ARRAY(Text), nullable=False, server_default=text("'{}'"), info=no_content("random ids")
    ),
    ForeignKeyConstraint(["tenant", "run_id"], ["dream_run.tenant", "dream_run.id"], ondelete="CASCADE"),
)

Index("dream_change_run_idx", dream_change.c.tenant, dream_change.c.run_id, dream_change.c.id)
Index(
    "dream_change_added_sources_idx",
    dream_change.c.tenant,
    dream_change.c.entry_id,
    postgresql_where=dream_change.c.added_sources.is_not(None),
)

dream_read_turn = Table(
    "dream_read_turn",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("pass", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("seq", Integer, nullable=False, info=names_turns(Subject.WITHDRAWN_TURN, first_seq="seq")),
    PrimaryKeyConstraint("tenant", "session_id", "seq", "pass"),
    ForeignKeyConstraint(
        ["tenant", "session_id", "seq"],
        ["turn.tenant", "turn.session_id", "turn.seq"],
        ondelete="CASCADE",
    ),
)

dream_read_signal = Table(
    "dream_read_signal",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("pass", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("signal_id", Text, nullable=False, info=no_content("a random id")),
    PrimaryKeyConstraint("tenant", "signal_id", "pass"),
    ForeignKeyConstraint(
        ["tenant", "signal_id"], ["feedback_signal.tenant", "feedback_signal.id"], ondelete="CASCADE"
    ),
)

dream_evaluated_session = Table(
    "dream_evaluated_session",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    # The last turn that an evaluation covers; 0 while there is none.
    Column(
        "seq",
        Integer,
        nullable=False,
        server_default=text("0"),
        info=names_turns(Subject.WITHDRAWN_TURN, first_seq=1),
    ),
    # The last turn of the evaluation whose replies were unusable, and how many replies were.
    Column(
        "refused_seq",
        Integer,
        nullable=False,
        server_default=text("0"),
        info=names_turns(Subject.WITHDRAWN_TURN, first_seq=1),
    ),
    Column("refusals", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("tenant", "session_id"),
    ForeignKeyConstraint(["tenant", "session_id"], ["session.tenant", "session.id"], ondelete="CASCADE"),
)

dream_reviewed_memory = Table(
    "dream_reviewed_memory",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("memory_id", Text, nullable=False, info=names(Subject.MEMORY)),
    Column("version", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "memory_id"),
    ForeignKeyConstraint(["tenant", "memory_id"], ["memory.tenant", "memory.id"], ondelete="CASCADE"),
)

# A memory in a batch about which the model gave no usable reply: it is shown in smaller batches, and not at
# all after a batch of one, until it changes.
dream_refused_memory = Table(
    "dream_refused_memory",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("memory_id", Text, nullable=False, info=names(Subject.MEMORY)),
    Column("version", BigInteger, nullable=False),
    Column("batch_size", Integer, nullable=False),
    PrimaryKeyConstraint("tenant", "memory_id"),
    ForeignKeyConstraint(["tenant", "memory_id"], ["memory.tenant", "memory.id"], ondelete="CASCADE"),
)

# The memories that an undone merge had joined, or that an undone run had archived: no run does it again
# until their content changes.
dream_undone_change = Table(
    "dream_undone_change",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("group_id", Text, nullable=False, info=no_content("a random id")),
    Column("memory_id", Text, nullable=False, info=names(Subject.MEMORY)),
    Column("content_version", Integer, nullable=False),
    # `merged`, or the reason of an archiving without a successor.
    Column("reason", Text, nullable=False, info=no_content("one of a fixed list")),
    PrimaryKeyConstraint("tenant", "group_id", "memory_id"),
    ForeignKeyConstraint(["tenant", "memory_id"], ["memory.tenant", "memory.id"], ondelete="CASCADE"),
)

Index("dream_undone_change_memory_idx", dream_undone_change.c.tenant, dream_undone_change.c.memory_id)

preference_occurrence = Table(
    "preference_occurrence",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("agent_id", Text, nullable=False, info=content()),
    Column("user_id", Text, info=content()),
    Column("key", Text, nullable=False, info=content()),
    Column("level", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("session_id", Text, nullable=False, info=names(Subject.SESSION)),
    Column("seq", Integer, nullable=False, info=names_turns(Subject.WITHDRAWN_TURN, first_seq="seq")),
    # The lowest seq of the evidence that this turn belongs to: turns of one piece of evidence count once.
    Column("first_seq", Integer, nullable=False),
    Column("run_id", Text, nullable=False, info=no_content("a random id")),
    Column("inferred_at", DateTime(timezone=True)),
    PrimaryKeyConstraint("tenant", "session_id", "seq", "key"),
    ForeignKeyConstraint(
        ["tenant", "session_id", "seq"],
        ["turn.tenant", "turn.session_id", "turn.seq"],
        ondelete="CASCADE",
    ),
)

Index(
    "preference_occurrence_key_idx",
    preference_occurrence.c.tenant,
    preference_occurrence.c.agent_id,
    preference_occurrence.c.key,
)
