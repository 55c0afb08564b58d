"""An OpenAI-compatible chat endpoint that answers with what a function returns for the user message."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def serving(model: str, reply_to: Callable[[str], str]) -> Iterator[str]:
    """Answer on a free port until the block ends, and yield the base URL."""

    class Handler(_Handler):
        name, answer = model, staticmethod(reply_to)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name=f"{model}-server")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    name: str
    answer: Callable[[str], str]

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": self.name, "object": "model"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = str(request["messages"][-1]["content"])
        content = self.answer(prompt)
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": min(len(content) // 4, 1000)}
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        self._send({"model": request.get("model"), "choices": [choice], "usage": usage})

    def log_message(self, *_: Any) -> None:
        """Print nothing: the output is the benchmark's."""

    def _send(self, payload: dict[str, Any]) -> None:
        body = json.dumps(payload).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
