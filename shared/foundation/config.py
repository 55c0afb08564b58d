"""The settings: one frozen object, read once when a process starts. Each field comes from `LOCI_<NAME>`.

The addresses of the databases come from the environment or, on a single machine, from
`<LOCI_DATA_DIR>/addresses.json`, which `loci up` writes when it starts the databases itself. The
environment has priority. A bad value stops the process with a message that names the variable.
"""

from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from cronsim import CronSim, CronSimError
from pydantic import Field, SecretStr, ValidationError, computed_field, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from shared.foundation import errors
from shared.foundation.local_addresses import LocalAddresses, with_database


class Settings(BaseSettings):
    """All settings. Times are in seconds and sizes in characters, unless a comment says otherwise."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        env_prefix="LOCI_", frozen=True, extra="ignore", env_ignore_empty=True
    )

    # Addresses and processes
    data_dir: Path = Path(".loci")
    host: str = "127.0.0.1"
    port: int = Field(8700, ge=1, le=65535)
    flower_port: int = Field(5555, ge=1, le=65535)
    flower_user: str = "loci"
    flower_password: SecretStr | None = None
    postgres_url: SecretStr | None = None
    # The Postgres role that processes act as. It owns nothing and has no BYPASSRLS, so row-level
    # security stops a query without a tenant filter even if the address logs in as the schema's owner.
    postgres_role: str = "loci_app"
    postgres_pool_size: int = Field(10, ge=1)
    redis_url: SecretStr | None = None
    # A separate Redis database, so that the queue never competes with working memory for eviction.
    broker_url: SecretStr | None = None
    qdrant_url: str | None = None
    qdrant_api_key: SecretStr | None = None
    # Installations that share a Redis or a Qdrant need different prefixes.
    prefix: str = Field("loci", pattern=r"^[a-z0-9_]+$")

    # Models. Without them, search is by keyword only and memories stay as they were written.
    llm_base_url: str | None = None
    llm_model: str | None = None
    llm_api_key: SecretStr | None = None
    llm_timeout: float = Field(60, gt=0)
    llm_max_tokens: int = Field(2000, ge=1)
    llm_concurrency: int = Field(8, ge=1)
    embedding_base_url: str | None = None
    embedding_model: str | None = None
    embedding_api_key: SecretStr | None = None
    embedding_dimension: int | None = Field(None, ge=1)
    embedding_timeout: float = Field(30, gt=0)
    embedding_batch: int = Field(64, ge=1, le=2048)
    embedding_max_chars: int = Field(30_000, ge=1)
    # The longest time that a search waits for its query's vector before it uses keywords alone.
    query_embedding_timeout: float = Field(2, gt=0)
    directives_dir: Path | None = None

    # Search
    search_candidates: int = Field(100, ge=10, le=1000)
    search_strategy: Literal["blend", "mean", "rrf", "bm25"] = "blend"
    recall_limit: int = Field(8, ge=1)
    recall_newest_limit: int = Field(5, ge=0)
    recall_episodes: int = Field(5, ge=0)
    recall_past_turns: int = Field(0, ge=0, le=20)
    # The longest time that a request waits for the index before it searches Postgres instead.
    qdrant_timeout: float = Field(2, gt=0)
    redis_timeout: float = Field(1, gt=0)

    # Working memory and conversation
    working_ttl: int = Field(300, ge=1)
    working_max_entries: int = Field(50, ge=1)
    working_chunk_threshold: int = Field(16_000, ge=1)
    working_chunk_size: int = Field(20_000, ge=1)
    working_chunked_ttl: int = Field(1200, ge=1)
    window_max_turns: int = Field(50, ge=1)
    context_max_turns: int = Field(20, ge=1)
    window_ttl: int = Field(3600, ge=1)

    # Sessions with state: keys and transcript entries of one session, keys of one agent
    session_max_keys: int = Field(200, ge=1)
    session_max_transcript_entries: int = Field(500, ge=1)
    agent_max_keys: int = Field(500, ge=1)
    # Time to live of a `tmp` store after its last write, unless its session sets another.
    tmp_ttl: int = Field(3600, ge=1)

    # Spend
    prices_file: Path | None = None
    budget_alert: float = Field(0.8, gt=0, le=1)

    # Jobs. A lease must be longer than the time limits of the calls, or a slow call is made twice.
    job_lease: float = Field(120, gt=0)
    job_max_attempts: int = Field(5, ge=1)
    job_backoff: float = Field(2, gt=0)
    job_backoff_max: float = Field(300, gt=0)
    dispatch_interval: float = Field(2, gt=0)
    sweep_interval: float = Field(60, gt=0)
    # How long a stopping worker waits for its jobs before it releases them. If this is shorter than a
    # model call, the call is cancelled and made (and paid for) again by another worker.
    worker_shutdown_grace: float = Field(5, ge=0)
    # How long a stopping gateway still serves requests while it reports that it is not ready and closes
    # connections. A load balancer needs this time to stop sending requests to it.
    gateway_drain: float = Field(3, ge=0)

    # Dreams
    dream_enabled: bool = True
    dream_initial_delay: float = Field(300, ge=0)
    dream_interval: float = Field(4 * 3600, gt=0)
    # Five cron fields in UTC, instead of the interval: for example hours with little traffic.
    dream_cron: str | None = None
    # A dream run starts only after its scope had no activity for this long.
    dream_quiet_period: float = Field(30, ge=0)
    dream_disabled_passes: frozenset[str] = frozenset()
    dream_lease: float = Field(300, gt=0)
    dream_batch_size: int = Field(1000, ge=2)
    dream_signal_days: float = Field(7, gt=0)
    dream_max_signals: int = Field(50, ge=0)
    dream_max_turns: int = Field(500, ge=1)
    session_idle_seconds: float = Field(1800, gt=0)

    # Retention, in days unless said otherwise
    retention_archived_days: float = Field(90, gt=0)
    retention_turn_days: float | None = Field(None, gt=0)
    retention_history_days: float | None = Field(None, gt=0)
    retention_idempotency_hours: float = Field(24, gt=0)
    retention_embedding_cache_days: float = Field(30, gt=0)
    retention_feedback_days: float = Field(90, gt=0)
    retention_dream_days: float = Field(90, gt=0)

    # Workers and beat write their heartbeat here, for `loci alive`. There is no default: two workers on
    # one machine would write the same file, and one of them would hide the death of the other.
    heartbeat_file: Path | None = None
    log_level: str = "INFO"
    # The base URL of an OpenTelemetry collector (OTLP over HTTP). Without it, nothing is traced.
    otlp_endpoint: str | None = None

    @field_validator("dream_cron")
    @classmethod
    def _require_cron(cls, expression: str | None) -> str | None:
        if expression is not None and not _is_cron(expression):
            raise ValueError("must be five cron fields that name a time: minute hour day month weekday")
        return expression

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


def _is_cron(expression: str) -> bool:
    try:
        next(CronSim(expression, datetime.now(UTC)))
    except (CronSimError, StopIteration):
        return False
    return len(expression.split()) == 5


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
        raise errors.Misconfigured(
            f"{variable} is not set, and no local stack has written its address (is `loci up` running?)"
        )
    return value.get_secret_value() if isinstance(value, SecretStr) else value
