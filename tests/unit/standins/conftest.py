"""A stand-in for a model endpoint, and a client that calls it as the product would."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.standins.models import ModelServer


class Caller:
    """Calls a stand-in over one connection that is kept open."""

    def __init__(self, server: ModelServer) -> None:
        self.http = httpx.Client(base_url=server.url, timeout=10)

    def chat(self, prompt: str = "hello there", **body: Any) -> httpx.Response:
        """Request a completion."""
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": prompt}]
        return self.http.post("/chat/completions", json={"model": "m", "messages": messages, **body})

    def chat_text(self, prompt: str = "hello there") -> str:
        """Request a completion and return its text."""
        return str(self.chat(prompt).raise_for_status().json()["choices"][0]["message"]["content"])

    def embed(self, *texts: str, **body: Any) -> httpx.Response:
        """Request vectors."""
        return self.http.post("/embeddings", json={"model": "e", "input": list(texts), **body})

    def vectors(self, *texts: str, **body: Any) -> list[list[float]]:
        """Request vectors and return them in the order of the response."""
        return [item["embedding"] for item in self.embed(*texts, **body).raise_for_status().json()["data"]]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Start a stand-in."""
    with ModelServer() as server:
        yield server


@pytest.fixture
def caller(server: ModelServer) -> Iterator[Caller]:
    """Return a client of the stand-in."""
    caller = Caller(server)
    with caller.http:
        yield caller
