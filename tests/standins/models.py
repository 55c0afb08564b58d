"""A stand-in for a model endpoint: OpenAI's protocol over real HTTP, programmable to fail.

    with ModelServer() as server:
        server.chat_default = Reply(lambda call: '{"entries": []}')
        server.chat_replies.extend([Status(429, retry_after=1), Drop()])
        ...                              # the code under test calls server.url
        server.wait_for_calls(3)

Each request takes the first behaviour of its path's plan, or the default when the plan is empty.
Plans, defaults and `dimension` may be changed at any time, from any thread. A server that was
stopped starts again on the same port, so an endpoint can go away and come back. In a process of
its own (`python -m tests.standins.models --port P`) it is programmed by `POST /_control`.
"""

import json
import secrets
import socket
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.standins import control
from tests.standins.behaviours import Hang, Reply, Slow, Status, Vectors
from tests.standins.wire import CHAT, EMBEDDINGS, Behaviour, Call, Wire


class ModelServer:
    """The stand-in, in threads of this process. A context manager: started inside, stopped after."""

    def __init__(self, *, port: int = 0, dimension: int = 64, chat_default: Behaviour | None = None) -> None:
        self.dimension = dimension
        self._first_default: Behaviour = chat_default or Reply()
        self.chat_default = self._first_default
        self.embedding_default: Behaviour = Vectors()
        self.chat_replies: deque[Behaviour] = deque()
        self.embedding_replies: deque[Behaviour] = deque()
        self.closing = threading.Event()
        self._held: list[threading.Event] = []
        self._port = port
        # A name of its own: a client of another test's stand-in, which had the same port, is not answered.
        self._name = "" if port else f"/{secrets.token_hex(4)}"
        self._calls: list[Call] = []
        self._called = threading.Condition()
        self._listener: _Listener | None = None

    def start(self) -> Self:
        """Listen, on the port of the last time if there was one."""
        self.closing.clear()
        self._listener = _Listener(self, self._port)
        self._port = self._listener.server_port
        return self

    def stop(self) -> None:
        """Cut every connection, end every hanging call and stop listening."""
        if self._listener is None:
            return
        self.closing.set()
        self.release()
        self._listener.end()
        self._listener = None

    def release(self) -> None:
        """Let every call that hangs now go on."""
        for release in list(self._held):
            release.set()

    @property
    def url(self) -> str:
        """The base URL, ending in /v1."""
        return f"http://127.0.0.1:{self._port}{self._name}/v1"

    @property
    def calls(self) -> list[Call]:
        """All requests so far, in order of arrival; those for chat are `chat_calls`."""
        with self._called:
            return list(self._calls)

    @property
    def chat_calls(self) -> list[Call]:
        """The requests to a chat model."""
        return [call for call in self.calls if call.path == CHAT]

    @property
    def embedding_calls(self) -> list[Call]:
        """The requests for vectors."""
        return [call for call in self.calls if call.path == EMBEDDINGS]

    def wait_for_calls(self, count: int, timeout: float = 10, path: str | None = None) -> list[Call]:
        """Wait until `count` requests (to `path`) have arrived and return them; raise TimeoutError."""

        def arrived() -> list[Call]:
            return [call for call in self._calls if path in (None, call.path)]

        with self._called:
            if not self._called.wait_for(lambda: len(arrived()) >= count, timeout):
                message = f"{len(arrived())} of {count} calls arrived within {timeout} s"
                raise TimeoutError(message)
            return arrived()

    def reset(self) -> None:
        """Forget calls and plans, and let the defaults be those of a new server."""
        with self._called:
            self._calls.clear()
        self.chat_replies.clear()
        self.embedding_replies.clear()
        self.chat_default, self.embedding_default = self._first_default, Vectors()
        self.release()

    def answer(self, path: str, raw: bytes, headers: dict[str, str], connection: socket.socket) -> bool:
        """Record one request and play its behaviour; tell whether the connection stays open."""
        if not path.startswith(f"{self._name}/"):
            connection.close()
            return False
        path = path.removeprefix(self._name)
        default, behaviour = self._take(path)
        call = Call(path, _parsed(raw), raw, headers, behaviour)
        with self._called:
            self._calls.append(call)
            self._called.notify_all()
        wire = Wire(connection, self.dimension, default, self.closing, self._held)
        _play(call, wire, behaviour)
        return not wire.closed

    def _take(self, path: str) -> tuple[Behaviour, Behaviour]:
        plans = {CHAT: self.chat_replies, EMBEDDINGS: self.embedding_replies}
        if path not in plans:
            return Status(404), Status(404, message=f"the stand-in has no {path}")
        default = self.chat_default if path == CHAT else self.embedding_default
        try:
            behaviour = plans[path].popleft()
        except IndexError:
            behaviour = default
        # What waits goes on with the default, which must then not be one that waits.
        plain: Behaviour = Reply() if path == CHAT else Vectors()
        return (plain if isinstance(default, Hang | Slow) else default), behaviour

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Listener(ThreadingHTTPServer):
    """One listening socket, a thread for each connection, all of which `end` waits for."""

    daemon_threads = False
    request_queue_size = 512

    def __init__(self, models: ModelServer, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.models = models
        self._open: set[Any] = set()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), name="model-server")
        self._thread.start()

    def end(self) -> None:
        self.shutdown()
        self._thread.join()
        for connection in list(self._open):
            _close(connection)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that hang up are what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.endswith(control.PATH):
            self._send(control.program(self.server.models, json.loads(raw)))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not self.server.models.answer(self.path, raw, headers, self.connection):
            self.close_connection = True

    def do_GET(self) -> None:
        if self.path.endswith(control.PATH):
            self._send(control.report(self.server.models))
        else:
            self._send({"object": "list", "data": [{"id": "stand-in", "object": "model"}]})

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _send(self, body: object) -> None:
        models = self.server.models
        Wire(self.connection, models.dimension, Reply(), models.closing, []).send(body)


def _play(call: Call, wire: Wire, behaviour: Behaviour) -> None:
    try:
        behaviour.play(call, wire)
    except OSError:
        wire.drop()
    except Exception as error:  # noqa: BLE001 - a test's own function may raise anything; the caller sees it
        Status(500, message=f"the reply's function failed: {error!r}").play(call, wire)


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _close(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


if __name__ == "__main__":
    control.main(ModelServer)
