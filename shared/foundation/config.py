"""The settings: one frozen object, read once when a process starts. Each field comes from `LOCI_<NAME>`.

The addresses of the databases come from the environment or, on a single machine, from
`<LOCI_DATA_DIR>/addresses.json`, which `loci up` writes when it starts the databases itself. The
environment has priority. A bad value stops the process with a message that names the variable.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, computed_field, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from shared.foundation import errors, setting_rules
from shared.foundation.feature_settings import FeatureSettings
from shared.foundation.local_addresses import LocalAddresses, with_database


class Settings(FeatureSettings):
    """All settings. Times are in seconds and sizes in characters, unless said otherwise."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        env_prefix="LOCI_", frozen=True, extra="ignore", env_ignore_empty=True, use_attribute_docstrings=True
    )

    # Addresses and processes
    data_dir: Path = Path(".loci")
    """The folder of a local stack: databases, logs, `dev-key`."""
    host: str = "127.0.0.1"
    """The address that the gateway listens on."""
    port: int = Field(8700, ge=1, le=65535)
    """The port of the gateway."""
    gateway_processes: int | None = Field(None, ge=1)
    """Processes that answer HTTP behind one socket. Unset means one for each two cores, at most 4."""
    flower_port: int = Field(5555, ge=1, le=65535)
    """The port of Flower."""
    flower_user: str = "loci"
    """The user name of Flower's login."""
    flower_password: SecretStr | None = None
    """The password of Flower's login. `loci up` makes one."""
    postgres_url: SecretStr | None = None
    """The address of Postgres, 15 or newer. `loci up` starts one."""
    postgres_role: str = "loci_app"
    """The Postgres role that processes act as. It owns nothing and has no BYPASSRLS, so row-level
    security stops a query without a tenant filter even if the address logs in as the schema's owner."""
    postgres_pool_size: int = Field(10, ge=1)
    """Connections that a process keeps open. Under load it opens up to twice as many."""
    redis_url: SecretStr | None = None
    """The address of Redis for working memory and conversation windows. It needs an append-only file."""
    broker_url: SecretStr | None = None
    """The address of Celery's broker. Unset means database 1 of `LOCI_REDIS_URL`: a separate one, so that
    the queue never competes with working memory for eviction."""
    qdrant_url: str | None = None
    """The address of Qdrant, 1.10 or newer. From 1.19 on, word statistics are each tenant's own."""
    qdrant_api_key: SecretStr | None = None
    """The API key of Qdrant."""
    prefix: str = Field("loci", pattern=r"^[a-z0-9_]+$")
    """The beginning of every Redis key and Qdrant collection: different for installations that share them."""

    # Models
    llm_base_url: str | None = None
    """An OpenAI-compatible endpoint for enrichment and dreams. Without it memories stay as written."""
    llm_model: str | None = None
    """The name of the language model. Unset means the only model that the endpoint lists."""
    llm_api_key: SecretStr | None = None
    """The API key of the language model's endpoint."""
    llm_timeout: float = Field(60, gt=0)
    """The time limit of a call to the language model."""
    llm_max_tokens: int = Field(2000, ge=1)
    """The most tokens that a reply may have."""
    llm_prompt_tokens: int = Field(120_000, ge=1)
    """About how many tokens a prompt may have. What does not fit is asked in further calls."""
    llm_prompt_tokens_by_model: dict[str, int] = {}
    """The same for single models, as a JSON object by the model's name. With the reply it must fit into the
    model's context."""
    llm_compact_from: int = Field(4000, ge=2000)
    """Characters from which on a final memory is split into focused ones; the original is archived."""
    llm_concurrency: int = Field(8, ge=1)
    """Calls to the language model at the same time, per worker process."""
    model_probe_interval: float = Field(60, gt=0)
    """The time between two requests, by all workers together, to a model whose endpoint refuses every request
    (wrong key, unknown model, no quota). Its stage is paused until one of them is answered."""
    embedding_base_url: str | None = None
    """An OpenAI-compatible embedding endpoint. Without it search is by keyword."""
    embedding_model: str | None = None
    """The name of the embedding model. Unset means the only model that the endpoint lists."""
    embedding_api_key: SecretStr | None = None
    """The API key of the embedding endpoint."""
    embedding_dimension: int | None = Field(None, ge=1)
    """The length of the vectors. Unset means that the endpoint is asked."""
    embedding_timeout: float = Field(30, gt=0)
    """The time limit of a call that embeds records."""
    embedding_batch: int = Field(64, ge=1, le=2048)
    """Texts per call at most: of calls that take too long, the next are smaller."""
    embedding_max_chars: int = Field(30_000, ge=1)
    """Characters of a text that are embedded."""
    query_embedding_timeout: float = Field(2, gt=0)
    """The longest time that a search waits for its query's vector before it uses keywords alone."""
    directives_dir: Path | None = None
    """A folder of your own directives: `<tenant>/memory-rules.md` or `memory-rules.md`."""
    preferences_file: Path | None = None
    """A YAML file of preferences that hold where none is stored, as `examples/preferences/analyst.yaml`."""

    # Search
    search_candidates: int = Field(100, ge=10, le=1000)
    """Hits that are read per channel, before ranking."""
    search_recent_seconds: float = Field(3, ge=0, le=60)
    """Seconds during which a written record is found by keyword even while Qdrant merges segments; 0: off."""
    search_strategy: Literal["blend", "mean", "rrf", "bm25"] = "blend"
    """How keyword and vector scores are combined."""
    recall_limit: int = Field(8, ge=1)
    """Memories recalled per turn."""
    recall_newest_limit: int = Field(5, ge=0)
    """Newest memories in the context of a first turn that recalls none."""
    recall_episodes: int = Field(5, ge=0)
    """Episodes recalled per turn, under a header of their own."""
    recall_past_turns: int = Field(0, ge=0, le=20)
    """Turns of other sessions recalled per turn."""
    qdrant_timeout: float = Field(2, gt=0)
    """The longest time that a request waits for the index before it searches Postgres instead."""
    redis_timeout: float = Field(1, gt=0)
    """The longest time that a request waits for Redis."""

    # Working memory and conversation
    working_ttl: int = Field(300, ge=1)
    """The time to live of a working-memory entry that names none."""
    working_max_entries: int = Field(50, ge=1)
    """Live entries per namespace."""
    working_chunk_threshold: int = Field(16_000, ge=1)
    """Characters from which a value is stored in chunks."""
    working_chunk_size: int = Field(20_000, ge=1)
    """Characters per chunk."""
    working_chunked_ttl: int = Field(1200, ge=1)
    """The time to live of a value in chunks that names none."""
    window_max_turns: int = Field(50, ge=1)
    """Turns that a conversation window holds. While a summary is late, contexts replay up to so many."""
    context_max_patrol_entries: int = Field(20, ge=2)
    """Findings of patrols that a context lists: the best matches and the newest; it counts the others."""
    context_window_turns: int = Field(30, ge=2)
    """When so many turns stand in what contexts replay, its start moves; so they replay fewer. With a
    language model it moves as soon as a summary of the turns before it is stored."""
    context_window_step: int = Field(10, ge=1, validate_default=True)
    """Turns by which it moves. Until then a provider's prompt cache serves what the last context showed."""
    context_max_pinned_chars: int = Field(8000, ge=1)
    """Characters of the pinned texts of one context: those of the agent and those of its user together."""
    window_ttl: int = Field(3600, ge=1)
    """The time after which the window of an idle session is empty."""

    # Sessions with state
    session_max_keys: int = Field(200, ge=1)
    """Keys of a session; the least recently written goes first."""
    session_max_transcript_entries: int = Field(500, ge=1)
    """Transcript entries of a session; the oldest goes first."""
    agent_max_keys: int = Field(500, ge=1)
    """Keys of an agent; the least recently written goes first."""
    tmp_ttl: int = Field(3600, ge=1)
    """The time to live of a `tmp` store after its last write, unless its session sets another."""

    # Spend
    prices_file: Path | None = None
    """A TOML file with the prices of models, in USD per million tokens, which go before the built-in ones."""
    budget_alert: float = Field(0.8, gt=0, le=1)
    """The used part of a budget from which `loci_budget_alerts` counts it."""

    # Jobs and processes
    job_lease: float = Field(120, gt=0)
    """How long a worker may hold a job. It must be longer than the time limits of the calls, or a slow
    call is made twice."""
    job_max_attempts: int = Field(5, ge=1)
    """Attempts before a job ends with its reason."""
    job_backoff: float = Field(2, gt=0)
    """The delay before the second attempt. It doubles with each attempt."""
    job_backoff_max: float = Field(300, gt=0)
    """The longest delay between attempts."""
    dispatch_interval: float = Field(2, gt=0)
    """The time between two looks for due jobs."""
    sweep_interval: float = Field(60, gt=0)
    """The time between two sweeps."""
    worker_shutdown_grace: float = Field(5, ge=0)
    """How long a stopping worker waits for its jobs before it releases them. If this is shorter than a model
    call, the call is cancelled and made (and paid for) again by another worker."""
    gateway_drain: float = Field(3, ge=0)
    """How long a stopping gateway still serves requests while it reports that it is not ready, so that a load
    balancer stops sending requests to it. Under `loci up` it is 0."""

    # Dreams
    dream_enabled: bool = True
    """Whether runs start on their own."""
    dream_initial_delay: float = Field(300, ge=0)
    """The time from a scope's first activity to its first run."""
    dream_interval: float = Field(4 * 3600, gt=0)
    """The time between two runs over a scope."""
    dream_cron: str | None = None
    """When runs start, instead of the interval: five cron fields in UTC."""
    dream_quiet_period: float = Field(30, ge=0)
    """A run starts only after its scope had no activity for this long."""
    dream_disabled_passes: frozenset[str] = frozenset()
    """Passes that are switched off, as a JSON list."""
    dream_lease: float = Field(300, gt=0)
    """How long a worker may hold a pass."""
    dream_batch_size: int = Field(1000, ge=2)
    """Memories that a model is shown in one call."""
    dream_signal_days: float = Field(7, gt=0)
    """The age in days of the oldest feedback signal that a pass reads."""
    dream_max_signals: int = Field(50, ge=0)
    """The most feedback signals that a pass reads, the newest first."""
    dream_max_turns: int = Field(500, ge=1)
    """The most turns that a pass reads."""
    dream_prompt_tokens: int = Field(100_000, ge=1000)
    """About how many tokens a prompt of a dream pass may have; what does not fit is asked in further parts.
    It must fit into the context of the model, together with the reply."""
    session_idle_seconds: float = Field(1800, gt=0)
    """The time without activity after which a session is evaluated."""
    mine_rest_seconds: float = Field(60, ge=0)
    """The time without activity in a scope after which facts are mined out of its turns."""
    mine_turns: int = Field(20, ge=1)
    """When a scope has so many turns that were not mined, they are mined without waiting for that."""

    # Retention
    retention_archived_days: float = Field(90, gt=0)
    """Days after which archived memories are purged."""
    evidence_days: float = Field(365, gt=0)
    """Days after which memories are purged that were rewritten or merged and lead to what they became."""
    retention_turn_days: float | None = Field(None, gt=0)
    """Days after which turns are deleted. Unset means never."""
    retention_history_days: float | None = Field(None, gt=0)
    """Days after which the history of memories is deleted. Unset means never."""
    retention_idempotency_hours: float = Field(24, gt=0)
    """Hours after which stored responses are deleted."""
    retention_embedding_cache_days: float = Field(30, gt=0)
    """Days without use after which cached embeddings are deleted."""
    retention_feedback_days: float = Field(90, gt=0)
    """Days after which feedback signals are deleted."""
    retention_dream_days: float = Field(90, gt=0)
    """Days after which dream runs are deleted. A run can be undone until then."""
    retention_erasure_days: float = Field(90, gt=0)
    """Days after which the receipts of erasures are deleted."""

    # Liveness, logs and traces
    heartbeat_file: Path | None = None
    """Where a worker or beat shows that it is alive, for `loci alive`. There is no default: two workers on
    one machine would write the same file, and one would hide the death of the other."""
    log_level: str = "INFO"
    """The lowest level that is logged. Logs are JSON lines on standard error, without any memory's text."""
    otlp_endpoint: str | None = None
    """The base URL of an OpenTelemetry collector (OTLP over HTTP). Without it nothing is traced."""

    @field_validator("dream_cron")
    @classmethod
    def _require_cron(cls, expression: str | None) -> str | None:
        return setting_rules.require_cron(expression)

    @field_validator("context_window_step")
    @classmethod
    def _require_smaller_step(cls, step: int, info: ValidationInfo) -> int:
        return setting_rules.require_smaller_step(step, info.data)

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def broker_address(self) -> str:
        """The broker's address: `broker_url`, or else database 1 of `redis_url`."""
        if self.broker_url is not None:
            return self.broker_url.get_secret_value()
        return with_database(require_setting(self.redis_url, "LOCI_REDIS_URL"), 1)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Add the local stack's addresses, with a lower priority than the environment."""
        del dotenv_settings
        return (
            init_settings,
            env_settings,
            file_secret_settings,
            LocalAddresses(settings_cls, init_settings, env_settings),
        )


def load(**overrides: Any) -> Settings:
    """Read the settings. Raises errors.Misconfigured, which names each bad variable."""
    try:
        return Settings(**overrides)
    except ValidationError as error:
        problems = "; ".join(f"LOCI_{str(e['loc'][0]).upper()}: {e['msg']}" for e in error.errors())
        raise errors.Misconfigured(problems) from None


def require_setting(value: SecretStr | str | None, variable: str) -> str:
    """Return the value of a setting that this process needs. Raises errors.Misconfigured without it."""
    if value is None:
        why = "is not set, and no local stack has written its address (is `loci up` running?)"
        raise errors.Misconfigured(f"{variable} {why}")
    return value.get_secret_value() if isinstance(value, SecretStr) else value
