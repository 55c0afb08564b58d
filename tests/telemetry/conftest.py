"""A stack that reports as much as possible: logs at DEBUG, traces to a collector, tasks to Flower."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.journey.rewriting import SynonymVectors, reply_by_sentence
from tests.journey.stack import ProcessStack, run_stack
from tests.memory_folder import memory_folder
from tests.standins.behaviours import Reply
from tests.standins.collector import Collector
from tests.standins.models import ModelServer


@pytest.fixture(scope="package")
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture(scope="package")
def model() -> Iterator[ModelServer]:
    with ModelServer(chat_default=Reply(reply_by_sentence)) as server:
        server.embedding_default = SynonymVectors()
        yield server


@pytest.fixture(scope="package")
def verbose_stack(collector: Collector, model: ModelServer) -> Iterator[ProcessStack]:
    settings: dict[str, Any] = {
        "llm_base_url": model.url,
        "llm_model": "rewriter",
        "judge_calibration_tokens": 0,  # or it would be asked the labelled questions, too
        "embedding_base_url": model.url,
        "embedding_model": "words",
        "otlp_endpoint": collector.url,
        "log_level": "DEBUG",
        "job_max_attempts": 2,
        "job_backoff": 0.05,
        "dispatch_interval": 0.3,
        "dream_quiet_period": 0,
        "model_probe_interval": 1,
    }
    with memory_folder() as folder, run_stack(folder / "data", **settings) as stack:
        yield stack
