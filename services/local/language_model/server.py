"""Run llama.cpp's server with one model on 127.0.0.1."""

import os
import sys
from pathlib import Path
from typing import Any

import httpx

from services.local import http_probe, ports
from services.local.language_model.files import ModelFiles
from services.local.server import LocalServer
from services.local.signals import Signals

_CONTEXT_TOKENS = 16_384
_REQUESTS_AT_ONCE = 2
"""They share the context: a prompt with its reply has half of it."""
_ANSWER_SECONDS = 10.0
_SETTINGS: dict[str, Any] = {
    "llm_prompt_tokens": 5_000,
    "llm_max_tokens": 400,  # a weak model repeats itself until it is stopped
    "llm_concurrency": _REQUESTS_AT_ONCE,
    "llm_timeout": 300,
    "job_lease": 400,
    "dream_lease": 1200,
}


class LanguageModelServer(LocalServer):
    """One server of one model. It is ready once it has answered a message."""

    name = "language model"

    def __init__(
        self,
        data_dir: Path,
        files: ModelFiles,
        port: int | None = None,
        *,
        signals: Signals | None = None,
    ) -> None:
        """Set the folder of the server's log and records; without `port` it takes a free one."""
        super().__init__(data_dir, port, signals=signals)
        self._files = files

    @property
    def url(self) -> str:
        """The base URL of its OpenAI-compatible API."""
        return f"http://{ports.HOST}:{self._port}/v1"

    @property
    def client_settings(self) -> dict[str, Any]:
        """The settings of a stack that asks this model, which is slow and has a small context."""
        return {"llm_base_url": self.url, "llm_model": self._files.name, **_SETTINGS}

    def _command(self) -> list[str]:
        return [
            *(sys.executable, "-P", "-m", "services.local.language_model.native"),
            *("--packages", str(self._files.packages)),
            *("--model", str(self._files.weights)),
            *("--alias", self._files.name),
            *("--port", str(self._port)),
            *("--context-tokens", str(_CONTEXT_TOKENS)),
            *("--parallel", str(_REQUESTS_AT_ONCE)),
            *("--threads", str(_threads())),
        ]

    def _is_ready(self) -> bool:
        return http_probe.responds_ok(ports.HOST, self._port or 0, "/health") and self._answers()

    def _answers(self) -> bool:
        message = {"role": "user", "content": "Say yes."}
        body = {"model": self._files.name, "messages": [message], "max_tokens": 1}
        try:
            response = httpx.post(
                f"{self.url}/chat/completions", json=body, timeout=_ANSWER_SECONDS, trust_env=False
            )
            return response.is_success and bool(response.json()["choices"])
        except (httpx.HTTPError, ValueError, LookupError, TypeError):
            return False


def _threads() -> int:
    """Return the number of threads: half the cores, because the threads wait for each other.

    On two busy cores two threads took ten times as long for a token as one.
    """
    return max(1, (os.cpu_count() or 1) // 2)
