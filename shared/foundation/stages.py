"""The life of a record, and the words of the job queue. Read this first.

A save is one transaction: it writes the record and a *job* for each thing that is still to do. The
record is durable from then on. A Celery message (a *wake-up*) says only that a stage has due jobs, so
losing one loses no work.

A job is one row of the durable queue in Postgres: a record, a *pipeline* and the *stage* that is next.

    pipeline      stages                      for
    index         index ──▶ embed             each searchable record, once per index generation
    enrichment    enrich                      memories, if a language model is configured
    summary       summarize                   a session whose turns are to be summarised
    idle          expire_window               a session with turns, until it was idle for an hour
    skill_summary summarize_skill             a skill whose summary is the beginning of its content
    promotion     promote                     the promotion that a report began
    dream         dream_start                 a scope that is due for a dream run
                  dream_pass, mine_pass       a dream run, until its last pass
    evaluation    dream_start                 a scope with sessions that are to be evaluated
    mining        mine_start                  a scope with turns that are to be mined for facts
    document      parse_document              an uploaded document, until its text is stored in chunks
                  publish_document            … and until the index has them
    removal       remove                      a deletion, until Redis and Qdrant hold nothing of it

`index` writes the keyword point: at once in the process that saves, or in a worker if that fails.
`embed` adds the vector to the point, if the generation has an embedding model. `enrich` archives the
memory in favour of focused successors, or ends with the states `kept-raw` or `failed`. `promote` stores
what is worth keeping of a session's scratchpad. `summarize` writes what the oldest turns of a session say
into its summary, and moves the start of its window behind them; `expire_window` makes that due for all
turns of an idle session. `summarize_skill` writes the summary that a skill came without.
`publish_document` makes search find a document's new chunks in place of the old ones.

A worker *claims* jobs for the time of a lease: each gets a new *lease token*, and the attempt is counted
and committed before the work begins. The worker holds no transaction open while it works, and records
the outcome only if the job still has that token. A job is reset if its record changes, and due again if
its worker dies. A complete job is deleted; one whose last attempt never came back is *dead*.
"""

from dataclasses import dataclass
from enum import StrEnum


class MemoryState(StrEnum):
    """The state of a long-term memory."""

    PENDING = "pending"  # raw, to be enriched; searchable already
    FINAL = "final"
    KEPT_RAW = "kept-raw"  # the model found nothing durable in it, or a budget did not allow the call
    FAILED = "failed"  # enrichment gave up; the raw text stays searchable
    ARCHIVED = "archived"  # superseded or set aside; purged after the retention period


class RecordKind(StrEnum):
    """The kind of record that a job is about."""

    MEMORY = "memory"
    TURN = "turn"
    WORKING = "working"
    OBSERVATION = "observation"
    PREFERENCE = "preference"  # with a described situation
    PLAYBOOK = "playbook"
    SKILL = "skill"
    DREAM_SCOPE = "dream_scope"  # a scope that is due for a dream run
    DREAM_RUN = "dream_run"
    SESSION = "session"
    PROMOTION = "promotion"  # of what a session's scratchpad holds
    DOCUMENT = "document"  # whose file is to be parsed
    DOCUMENT_CHUNK = "document_chunk"
    REMOVAL = "removal"  # what a deletion has still to remove from Redis and Qdrant


SEARCHABLE_KINDS = (
    *(RecordKind.MEMORY, RecordKind.TURN, RecordKind.WORKING, RecordKind.OBSERVATION),
    *(RecordKind.PREFERENCE, RecordKind.PLAYBOOK, RecordKind.DOCUMENT_CHUNK),
    RecordKind.SKILL,
)
"""The kinds that search can find. Each has a Qdrant collection of its own."""


class Pipeline(StrEnum):
    """A sequence of stages. A record has at most one job per pipeline and index generation."""

    INDEX = "index"
    ENRICHMENT = "enrichment"
    SUMMARY = "summary"
    IDLE = "idle"
    SKILL_SUMMARY = "skill_summary"
    PROMOTION = "promotion"
    DREAM = "dream"
    EVALUATION = "evaluation"
    MINING = "mining"
    DOCUMENT = "document"
    REMOVAL = "removal"


class ReasonCode(StrEnum):
    """Why a job is delayed, was released or is dead. The text stored with it is for people."""

    UNAVAILABLE = "unavailable"  # a database or a model could not be reached, refused, or took too long
    KEY_REFUSED = "key_refused"  # a model endpoint or Qdrant does not accept the API key
    NOT_PERMITTED = "not_permitted"  # the key is known, but may not use the model
    MODEL_UNKNOWN = "model_unknown"  # the endpoint has no such model, or the address is wrong
    QUOTA_USED_UP = "quota_used_up"
    REQUEST_REFUSED = "request_refused"  # the endpoint refuses all requests, and does not say why
    REJECTED = "rejected"  # a database refused the request itself, so repeating it may not help
    INVALID_REPLY = "invalid_reply"  # the model answered, but not in the form that was requested
    OVER_BUDGET = "over_budget"  # until the budget's window ends, or the budget or a price is changed
    NOT_READY = "not_ready"  # its scope is still active, or its run waits for another pass
    RELEASED = "released"  # its worker stopped; no attempt was used
    EXHAUSTED = "exhausted"  # dead: its last attempt never came back


REFUSALS_OF_MODEL = frozenset({ReasonCode.KEY_REFUSED, ReasonCode.MODEL_UNKNOWN, ReasonCode.QUOTA_USED_UP})
"""Why a model refuses whatever it is asked: once it answers one request, it refuses no other for these."""
REFUSALS = REFUSALS_OF_MODEL | {ReasonCode.NOT_PERMITTED, ReasonCode.REQUEST_REFUSED}
"""Why a stage is paused. The last two may be about what one stage asks, while others are answered."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a pipeline."""

    name: str
    pipeline: Pipeline
    task: str
    batch_size: int


INDEX = Stage("index", Pipeline.INDEX, "embedding.index_pending", batch_size=200)
EMBED = Stage("embed", Pipeline.INDEX, "embedding.embed_pending", batch_size=256)
ENRICH = Stage("enrich", Pipeline.ENRICHMENT, "enrichment.enrich_pending", batch_size=16)
SUMMARIZE = Stage("summarize", Pipeline.SUMMARY, "summary.summarize_pending", batch_size=16)
EXPIRE_WINDOW = Stage("expire_window", Pipeline.IDLE, "summary.expire_windows", batch_size=50)
SUMMARIZE_SKILL = Stage("summarize_skill", Pipeline.SKILL_SUMMARY, "summary.summarize_skills", batch_size=16)
PROMOTE = Stage("promote", Pipeline.PROMOTION, "enrichment.promote_pending", batch_size=16)

DREAM_START = Stage("dream_start", Pipeline.DREAM, "dream.start_due_runs", batch_size=20)
DREAM_PASS = Stage("dream_pass", Pipeline.DREAM, "dream.dispatch_next_passes", batch_size=10)
MINE_START = Stage("mine_start", Pipeline.MINING, "enrichment.start_due_mining", batch_size=20)
MINE_PASS = Stage("mine_pass", Pipeline.DREAM, "enrichment.dispatch_next_passes", batch_size=10)
PASS_STAGES = (DREAM_PASS, MINE_PASS)
"""The stages in which a run waits for its next pass. Each pass is a task of its own."""

PARSE_DOCUMENT = Stage("parse_document", Pipeline.DOCUMENT, "documents.parse_pending", batch_size=1)
PUBLISH_DOCUMENT = Stage("publish_document", Pipeline.DOCUMENT, "documents.publish_pending", batch_size=50)

REMOVE = Stage("remove", Pipeline.REMOVAL, "sweep.finish_removals", batch_size=10)

STAGES = {
    stage.name: stage
    for stage in (
        *(INDEX, EMBED, ENRICH, PROMOTE, SUMMARIZE, EXPIRE_WINDOW, SUMMARIZE_SKILL),
        *(DREAM_START, DREAM_PASS, MINE_START, MINE_PASS, PARSE_DOCUMENT, PUBLISH_DOCUMENT, REMOVE),
    )
}

# Tasks that belong to no stage: Celery beat sends them at fixed intervals.
DISPATCH_TASK = "sweep.dispatch_due_jobs"
SWEEP_TASK = "sweep.sweep_once"
# The sweep sends it while the judge is to be measured, which the table of calibrations says.
CALIBRATE_TASK = "enrichment.calibrate_judge"
# The sweep sends it while proposals wait that the trusted judge was not asked about.
JUDGE_PROPOSALS_TASK = "enrichment.judge_proposals"


def queue_of(task: str) -> str:
    """Return the queue of a task, which is named like the folder that declares the task."""
    return task.partition(".")[0]


class DreamPass(StrEnum):
    """The passes of a dream run, in their order. A value is the name of the pass's task without its queue."""

    MINE_FACTS = "mine_facts"
    DEDUPLICATE = "deduplicate"
    EVALUATE_SESSIONS = "evaluate_sessions"
    CONSOLIDATE = "consolidate"
    MINE_ANTI_PATTERNS = "mine_anti_patterns"
    INFER_PREFERENCES = "infer_preferences"
    EXTRACT_EPISODES = "extract_episodes"
    EXTRACT_ENTITIES = "extract_entities"
    CONSOLIDATE_GRAPH = "consolidate_graph"
    DETECT_SKILL_GAPS = "detect_skill_gaps"
    CONSOLIDATE_SKILLS = "consolidate_skills"
    OPTIMISE_SKILLS = "optimise_skills"


def stage_of_pass(name: DreamPass) -> Stage:
    """Return the stage in which a run waits for this pass; its queue is that of the pass's task."""
    return MINE_PASS if name is DreamPass.MINE_FACTS else DREAM_PASS


def task_of_pass(name: DreamPass) -> str:
    """Return the name of the task of a pass."""
    return f"{queue_of(stage_of_pass(name).task)}.{name}"
