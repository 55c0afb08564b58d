"""A stand-in for a model endpoint: OpenAI's protocol over real HTTP, which can be programmed to fail.

    with ModelServer() as server:
        server.chat_default = Reply(lambda call: '{"entries": []}')
        server.chat_replies.extend([Status(429, retry_after=1), Drop()])
        ...                              # the code under test calls server.url
        server.wait_for_calls(3)

Each request uses the first planned behaviour of its path, or the default if none is planned. Plans,
defaults and `dimension` may be changed at any time, from any thread. A stopped server starts again on the
same port, so that tests can make an endpoint unavailable for a time. In a process of its own
(`python -m tests.standins.models --port P`), the stand-in is programmed by `POST /_control`.
"""

import json
import secrets
import socket
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.standins import control
from tests.standins.asked_claims import asks_for_verdicts, is_for_judge, reply_text, yes_to_all
from tests.standins.behaviours import Hang, Reply, Slow, Status, Vectors
from tests.standins.wire import CHAT, EMBEDDINGS, Behaviour, Call, Wire

_AGREEING = Reply(lambda call: reply_text(call, yes_to_all))


class ModelServer:
    """A stand-in in threads of this process. As a context manager, it starts and stops by itself.

    Asked for verdicts, it finds all statements supported, whatever is planned for chats; `judge_default`
    changes that.
    """

    agrees_as_judge = True

    def __init__(self, *, port: int = 0, dimension: int = 64, chat_default: Behaviour | None = None) -> None:
        self.dimension = dimension
        self._first_default: Behaviour = chat_default or Reply()
        self.chat_default = self._first_default
        self.embedding_default: Behaviour = Vectors()
        self.judge_default: Behaviour = _AGREEING
        self.chat_replies: deque[Behaviour] = deque()
        self.embedding_replies: deque[Behaviour] = deque()
        self.closing = threading.Event()
        self._releases: list[threading.Event] = []
        self._port = port
        # A unique path, so that clients of an earlier stand-in on the same port get no response.
        self._name = "" if port else f"/{secrets.token_hex(4)}"
        self._calls: list[Call] = []
        self._called = threading.Condition()
        self._listener: _Listener | None = None

    def start(self) -> Self:
        """Listen; a server that was stopped listens on its former port."""
        self.closing.clear()
        self._listener = _Listener(self, self._port)
        self._port = self._listener.server_port
        return self

    def stop(self) -> None:
        """Close every connection, end every hanging call and stop listening."""
        if self._listener is None:
            return
        self.closing.set()
        self.release()
        self._listener.end()
        self._listener = None

    def release(self) -> None:
        """End the waiting of every call that hangs now."""
        for release in list(self._releases):
            release.set()

    @property
    def url(self) -> str:
        """The base URL, which ends with /v1."""
        return f"http://127.0.0.1:{self._port}{self._name}/v1"

    @property
    def calls(self) -> list[Call]:
        """All requests so far, in the order of their arrival."""
        with self._called:
            return list(self._calls)

    @property
    def chat_calls(self) -> list[Call]:
        """The requests for chat completions, but for verdicts."""
        return [call for call in self.calls if call.path == CHAT and not is_for_judge(call)]

    @property
    def judge_calls(self) -> list[Call]:
        """The requests for verdicts so far."""
        return [call for call in self.calls if call.path == CHAT and is_for_judge(call)]

    @property
    def embedding_calls(self) -> list[Call]:
        """The requests for embeddings."""
        return [call for call in self.calls if call.path == EMBEDDINGS]

    def wait_for_calls(self, count: int, timeout: float = 10, path: str | None = None) -> list[Call]:
        """Wait for `count` requests (to `path`) and return all of them. Raises TimeoutError.

        Requests for verdicts are no chats.
        """

        def matching_calls() -> list[Call]:
            return [
                call
                for call in self._calls
                if path is None or (call.path == path and not (path == CHAT and is_for_judge(call)))
            ]

        with self._called:
            if not self._called.wait_for(lambda: len(matching_calls()) >= count, timeout):
                message = f"{len(matching_calls())} of {count} calls arrived within {timeout} s"
                raise TimeoutError(message)
            return matching_calls()

    def reset(self) -> None:
        """Delete calls and plans, and restore the defaults of a new server."""
        with self._called:
            self._calls.clear()
        self.chat_replies.clear()
        self.embedding_replies.clear()
        self.chat_default, self.embedding_default = self._first_default, Vectors()
        self.judge_default = _AGREEING
        self.release()

    def respond(self, path: str, raw: bytes, headers: dict[str, str], connection: socket.socket) -> bool:
        """Record a request and play its behaviour; tell whether the connection stays open."""
        if not path.startswith(f"{self._name}/"):
            connection.close()
            return False
        path = path.removeprefix(self._name)
        body = _parse_json(raw)
        default, behaviour = self._choose_behaviour(path, body)
        call = Call(path, body, raw, headers, behaviour)
        with self._called:
            self._calls.append(call)
            self._called.notify_all()
        wire = Wire(connection, self.dimension, default, self.closing, self._releases)
        _play(call, wire, behaviour)
        return not wire.closed

    def _choose_behaviour(self, path: str, body: Any) -> tuple[Behaviour, Behaviour]:
        if self.agrees_as_judge and path == CHAT and asks_for_verdicts(body):
            return self.judge_default, self.judge_default
        plans = {CHAT: self.chat_replies, EMBEDDINGS: self.embedding_replies}
        if path not in plans:
            return Status(404), Status(404, message=f"the stand-in has no {path}")
        default = self.chat_default if path == CHAT else self.embedding_default
        try:
            behaviour = plans[path].popleft()
        except IndexError:
            behaviour = default
        # A behaviour that waits continues with the default, so that must not be one that waits.
        immediate: Behaviour = Reply() if path == CHAT else Vectors()
        return (immediate if isinstance(default, Hang | Slow) else default), behaviour

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Listener(ThreadingHTTPServer):
    """A listening socket with one thread per connection. `end` waits for all of them."""

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
        """Log nothing: the tests are about clients that close their connections."""


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
        if not self.server.models.respond(self.path, raw, headers, self.connection):
            self.close_connection = True

    def do_GET(self) -> None:
        if self.path.endswith(control.PATH):
            self._send(control.report(self.server.models))
        else:
            self._send({"object": "list", "data": [{"id": "stand-in", "object": "model"}]})

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

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


def _parse_json(raw: bytes) -> Any:
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
