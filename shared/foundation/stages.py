"""The whole life of a memory, and of every record that is searchable. Read this first.

A save is one transaction: the record's row and one `work` row for each thing left to do.
The record is durable from then on. What is left to do moves it along two tracks:

    index track, one for each index generation (memories, turns, desk entries, observations)

        saved ──▶ index ──▶ embed ──▶ done        index: the keyword point is written
                    │         │                          (at once by whoever saved; by a
                    └─────────┴──▶ done (no model)        worker when Qdrant was away)
                                                  embed: the vector is added to that point

    enrichment track (memories, when a language model is configured)

        pending ──▶ enrich ──▶ archived, its focused successors are `final`
                        ├────▶ kept-raw   (nothing durable in it, or over budget)
                        └────▶ failed     (with the reason; still searchable)

    dream track, for a scope and for a run over it

        active ──▶ dream ──▶ a run ──▶ dream_pass ──▶ … one after the other ──▶ done

A work row exists only while something is left to do: done means gone. A worker claims rows
(a lease by the database's clock, a fencing token, attempts + 1, committed before the work),
works with no transaction open, and records the outcome only while its token still stands.
A record that changes meanwhile resets its row, so the late outcome finds no token.
"""

from dataclasses import dataclass
from enum import StrEnum


class MemoryState(StrEnum):
    """Where a long-term entry stands."""

    PENDING = "pending"  # raw, waiting for enrichment; searchable all the while
    FINAL = "final"
    KEPT_RAW = "kept-raw"  # the model found nothing durable in it, or a budget forbade asking
    FAILED = "failed"  # enrichment gave up; the raw text stays
    ARCHIVED = "archived"  # superseded by others; purged after a while


class RecordKind(StrEnum):
    """What kind of record a work row is about."""

    MEMORY = "memory"
    TURN = "turn"
    WORKING = "working"
    OBSERVATION = "observation"
    DREAM_SCOPE = "dream_scope"  # an agent's, or one of its users', to be dreamed over
    DREAM_RUN = "dream_run"  # a dream run


SEARCHABLE_KINDS = (RecordKind.MEMORY, RecordKind.TURN, RecordKind.WORKING, RecordKind.OBSERVATION)
"""The kinds that are found by search: one collection each."""


class Pipeline(StrEnum):
    """What kind of progress a work row tracks. One row per record, track and generation."""

    INDEX = "index"
    ENRICHMENT = "enrichment"
    DREAM = "dream"


class ReasonCode(StrEnum):
    """Why a job is delayed, was given back or is dead. The text beside it is for people."""

    UNAVAILABLE = "unavailable"  # a database or a model could not be reached, refused, or took too long
    REJECTED = "rejected"  # a database refused the request itself, so that repeating it may not help
    INVALID_REPLY = "invalid_reply"  # the model answered, but not what was asked
    OVER_BUDGET = "over_budget"  # until the budget's window ends, or the budget or a price is changed
    NOT_READY = "not_ready"  # its scope is still active, or its run waits for another pass
    RELEASED = "released"  # its worker stopped; no attempt was used
    EXHAUSTED = "exhausted"  # dead: its last attempt never came back


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a track.

    `outage_counts`: whether a failure of the other side uses up an attempt. For the index it
    doesn't, for the record is fine and Qdrant comes back; a model that keeps refusing ends
    an enrichment as `failed`, since the raw entry serves as it is.
    """

    name: str
    pipeline: Pipeline
    task: str
    batch_size: int
    outage_uses_attempt: bool = False


INDEX = Stage("index", Pipeline.INDEX, "embedding.index_pending", batch_size=200)
EMBED = Stage("embed", Pipeline.INDEX, "embedding.embed_pending", batch_size=256)
ENRICH = Stage(
    "enrich", Pipeline.ENRICHMENT, "enrichment.enrich_pending", batch_size=16, outage_uses_attempt=True
)

DREAM_START = Stage("dream_start", Pipeline.DREAM, "dream.start_due_runs", batch_size=20)
DREAM_PASS = Stage(
    "dream_pass", Pipeline.DREAM, "dream.dispatch_next_passes", batch_size=10, outage_uses_attempt=True
)

STAGES = {stage.name: stage for stage in (INDEX, EMBED, ENRICH, DREAM_START, DREAM_PASS)}

# Tasks that are no stage of a record: the clock's.
DISPATCH_TASK = "sweep.dispatch_due_jobs"
SWEEP_TASK = "sweep.sweep_once"


def queue_of(task: str) -> str:
    """Return the queue of a task: the folder that declares it."""
    return task.partition(".")[0]


class DreamPass(StrEnum):
    """The passes, in the order of a run. The value is the task's name without its queue."""

    DEDUPLICATE = "deduplicate"
    EVALUATE_SESSIONS = "evaluate_sessions"
    CONSOLIDATE = "consolidate"
    MINE_ANTI_PATTERNS = "mine_anti_patterns"
    INFER_PREFERENCES = "infer_preferences"
    EXTRACT_EPISODES = "extract_episodes"
