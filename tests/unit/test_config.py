"""Settings come from variables `LOCI_…`; an error about a bad value names the variable."""

import json
import os
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from shared.foundation import config, errors, local_addresses


@pytest.fixture(autouse=True)
def _no_other_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("LOCI_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LOCI_PORT", "0"),
        ("LOCI_PORT", "65536"),
        ("LOCI_PORT", "eighty"),
        ("LOCI_PREFIX", "Loci"),
        ("LOCI_PREFIX", "a-b"),
        ("LOCI_LLM_TIMEOUT", "0"),
        ("LOCI_LLM_CONCURRENCY", "0"),
        ("LOCI_EMBEDDING_DIMENSION", "-1"),
        ("LOCI_EMBEDDING_BATCH", "2049"),
        ("LOCI_SEARCH_CANDIDATES", "9"),
        ("LOCI_RECALL_LIMIT", "0"),
        ("LOCI_RECALL_PAST_TURNS", "21"),
        ("LOCI_WORKING_MAX_ENTRIES", "0"),
        ("LOCI_CONTEXT_WINDOW_TURNS", "1.5"),
        ("LOCI_CONTEXT_WINDOW_STEP", "30"),
        ("LOCI_JOB_LEASE", "-1"),
        ("LOCI_JOB_MAX_ATTEMPTS", "0"),
        ("LOCI_RETENTION_ARCHIVED_DAYS", "0"),
        ("LOCI_RETENTION_TURN_DAYS", "0"),
        ("LOCI_RETENTION_IDEMPOTENCY_HOURS", "soon"),
        ("LOCI_DREAM_CRON", "at three"),
        ("LOCI_DREAM_CRON", "0 3 * *"),
        ("LOCI_DREAM_CRON", "0 0 3 * * *"),
        ("LOCI_DREAM_CRON", "60 3 * * *"),
        ("LOCI_DREAM_CRON", "0 0 30 2 *"),
    ],
)
def test_a_bad_value_names_the_variable(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(errors.Misconfigured, match=f"^{variable}: "):
        config.load()


def test_every_bad_value_is_named_at_once_and_no_secret_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCI_PORT", "x")
    monkeypatch.setenv("LOCI_JOB_LEASE", "y")
    monkeypatch.setenv("LOCI_LLM_API_KEY", "s3cret")
    with pytest.raises(errors.Misconfigured) as error_info:
        config.load()
    assert "LOCI_PORT: " in str(error_info.value)
    assert "LOCI_JOB_LEASE: " in str(error_info.value)
    assert "s3cret" not in str(error_info.value)


def test_the_defaults_are_the_documented_numbers() -> None:
    """LT10, WM2, WM3, WM8, CV1, Retention."""
    settings = config.load()
    assert (settings.recall_limit, settings.recall_newest_limit) == (8, 5)
    assert (settings.working_ttl, settings.working_max_entries) == (300, 50)
    assert (settings.working_chunk_threshold, settings.working_chunk_size, settings.working_chunked_ttl) == (
        16_000,
        20_000,
        1200,
    )
    assert (settings.window_max_turns, settings.window_ttl) == (50, 3600)
    assert (settings.context_window_turns, settings.context_window_step) == (30, 10)
    assert (settings.retention_archived_days, settings.retention_idempotency_hours) == (90, 24)
    assert (settings.retention_turn_days, settings.retention_history_days) == (None, None)
    assert (settings.llm_base_url, settings.embedding_base_url) == (None, None)
    assert settings.recall_past_turns == 0


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCI_RETENTION_TURN_DAYS", "")
    assert config.load().retention_turn_days is None


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        config.load().port = 1


def test_addresses_of_the_local_stack_are_read_from_the_data_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    addresses = {"redis_url": "redis://127.0.0.1:1", "qdrant_url": "http://127.0.0.1:2"}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / local_addresses.ADDRESSES_FILE).write_text(json.dumps(addresses))
    assert config.load().qdrant_url is None
    monkeypatch.setenv("LOCI_DATA_DIR", str(tmp_path / "data"))
    assert config.load().qdrant_url == "http://127.0.0.1:2"
    monkeypatch.setenv("LOCI_QDRANT_URL", "http://elsewhere")
    assert config.load().qdrant_url == "http://elsewhere"
    assert config.load(qdrant_url="http://argument").qdrant_url == "http://argument"


@pytest.mark.parametrize(
    ("redis", "broker"),
    [
        ("redis://h:1", "redis://h:1/1"),
        ("redis://h:1/0", "redis://h:1/1"),
        ("redis://:p@h:1/3", "redis://:p@h:1/1"),
        ("rediss://h:1/0?ssl_cert_reqs=none", "rediss://h:1/1?ssl_cert_reqs=none"),
    ],
)
def test_the_broker_is_database_1_of_the_redis_that_is_set(redis: str, broker: str) -> None:
    assert config.load(redis_url=redis).broker_address == broker
    assert config.load(redis_url=redis, broker_url="redis://b/5").broker_address == "redis://b/5"


def test_an_address_that_is_needed_and_not_set_is_named() -> None:
    with pytest.raises(errors.Misconfigured, match=r"^LOCI_REDIS_URL is not set"):
        _ = config.load().broker_address
    with pytest.raises(errors.Misconfigured, match=r"^LOCI_QDRANT_URL is not set"):
        config.require_setting(None, "LOCI_QDRANT_URL")
    assert config.require_setting(SecretStr("x"), "LOCI_POSTGRES_URL") == "x"
