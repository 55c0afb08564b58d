"""The API of `loci serve-embeddings` without weights: it lists one model, and has no other."""

import socket
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Self, cast

import numpy as np
import uvicorn

from services.local import ports
from services.local.embeddings import api
from services.local.embeddings.encoder import Encoded, Encoder
from tests.standins import vectors

_DIMENSION = 64


class EmbeddingEndpoint:
    """The API in a thread of this process, on one port. It may be started and stopped again."""

    def __init__(self, model: str = "all-MiniLM-L6-v2") -> None:
        self.model = model
        self._port = ports.pick_free_port()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base address, which ends with /v1."""
        return f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> Self:
        """Listen and serve."""
        listener = socket.create_server(("127.0.0.1", self._port))
        app = api.create_app(cast("Encoder", _StandInEncoder(self.model)))
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]})
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop serving."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
            self._server = self._thread = None


class _StandInEncoder:
    def __init__(self, model: str) -> None:
        self.model: Any = SimpleNamespace(name=model, dimension=_DIMENSION)

    async def encode(self, texts: Sequence[str]) -> Encoded:
        rows = [vectors.embed(text, _DIMENSION) for text in texts]
        return Encoded(np.array(rows, np.float32), sum(len(text.split()) for text in texts))
