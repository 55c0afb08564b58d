"""MO2: a worker that could do nothing, or would do everything in vain, refuses to start and says why."""

from pathlib import Path
from typing import Any

import pytest

from shared.foundation import config, errors
from workers.runtime import startup

MODELS = {"llm_base_url": "http://127.0.0.1:9/v1", "embedding_base_url": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"llm_timeout": 97}, ("LOCI_LLM_TIMEOUT is 97", "at most 96", "LOCI_JOB_LEASE")),
        (
            {"llm_timeout": 90, "dream_lease": 100},
            ("LOCI_LLM_TIMEOUT is 90", "at most 80", "LOCI_DREAM_LEASE"),
        ),
        ({"embedding_timeout": 100}, ("LOCI_EMBEDDING_TIMEOUT is 100", "LOCI_JOB_LEASE")),
        ({"judge_timeout": 97, "judge_model": "j"}, ("LOCI_JUDGE_TIMEOUT is 97", "LOCI_JOB_LEASE")),
        ({"document_parse_seconds": 97}, ("LOCI_DOCUMENT_PARSE_SECONDS is 97", "LOCI_JOB_LEASE")),
    ],
)
def test_a_time_limit_over_eight_tenths_of_the_lease_is_refused(
    settings: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(errors.Misconfigured) as caught:
        startup.require_usable(config.load(**MODELS, **settings))
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize(
    "settings",
    [{"llm_timeout": 96}, {"embedding_timeout": 96}, {"job_lease": 2}, {"llm_timeout": 97, "job_lease": 122}],
)
def test_a_time_limit_within_the_lease_or_of_the_default_is_accepted(settings: dict[str, Any]) -> None:
    startup.require_usable(config.load(**MODELS, **settings))


def test_the_time_limit_of_a_model_that_is_not_configured_does_not_matter() -> None:
    startup.require_usable(config.load(llm_timeout=500, embedding_timeout=500, judge_timeout=500))


@pytest.mark.parametrize("content", [None, "not TOML", '[models."m"]\ninput = "x"', b"\xff\xfe"])
def test_a_price_file_that_cannot_be_read_is_refused(tmp_path: Path, content: str | bytes | None) -> None:
    file = tmp_path / "prices.toml"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(errors.Misconfigured, match="LOCI_PRICES_FILE"):
        startup.require_usable(config.load(prices_file=file))


def test_directives_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    startup.require_usable(config.load(directives_dir=tmp_path))
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "dream.md").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(errors.Misconfigured, match="LOCI_DIRECTIVES_DIR"):
        startup.require_usable(config.load(directives_dir=tmp_path))
    with pytest.raises(errors.Misconfigured, match="LOCI_DIRECTIVES_DIR"):
        startup.require_usable(config.load(directives_dir=tmp_path / "missing"))
