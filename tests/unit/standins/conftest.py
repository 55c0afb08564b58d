"""A stand-in, and a client that asks it as the product would."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.standins.models import ModelServer


class Caller:
    """Asks a stand-in over one kept-alive connection."""

    def __init__(self, server: ModelServer) -> None:
        self.http = httpx.Client(base_url=server.url, timeout=10)

    def chat(self, prompt: str = "hello there", **body: Any) -> httpx.Response:
        """Ask for a completion."""
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": prompt}]
        return self.http.post("/chat/completions", json={"model": "m", "messages": messages, **body})

    def said(self, prompt: str = "hello there") -> str:
        """Ask for a completion and return its text."""
        return str(self.chat(prompt).raise_for_status().json()["choices"][0]["message"]["content"])

    def embed(self, *texts: str, **body: Any) -> httpx.Response:
        """Ask for vectors."""
        return self.http.post("/embeddings", json={"model": "e", "input": list(texts), **body})

    def vectors(self, *texts: str, **body: Any) -> list[list[float]]:
        """Ask for vectors and return them as they come."""
        return [item["embedding"] for item in self.embed(*texts, **body).raise_for_status().json()["data"]]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Start a stand-in."""
    with ModelServer() as started:
        yield started


@pytest.fixture
def caller(server: ModelServer) -> Iterator[Caller]:
    """Return a client of the stand-in."""
    made = Caller(server)
    with made.http:
        yield made
