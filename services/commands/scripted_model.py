"""A stand-in for a language model, for the demo: it answers what a script says, and knows nothing.

It speaks the part of the chat protocol that Loci uses. For turns of the script it proposes the facts that
the script lists for them, in the form that the directive `mine-facts` asks for. To every other question it
answers that there is nothing to change.
"""

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
_SESSION = re.compile(r"^## Session: (.+)$", re.MULTILINE)
_KNOWN = re.compile(r"^- \[ID:([0-9a-f]{12})\] (.+) \(since ", re.MULTILINE)
_NOTHING = "[]"


@contextmanager
def serve(sessions: Sequence[Json]) -> Iterator[str]:
    """Answer on a free port until the block ends, and yield the base URL.

    A session of the script is {turns: [{role, text}], proposed: [fact]}: a fact has `sources`, the numbers of
    turns, and may have `of`, the text of the known fact that it is about.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = json.dumps(_completion(json.loads(self.rfile.read(length)), sessions)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing: the output is the demo's."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="scripted-model", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _completion(request: Json, sessions: Sequence[Json]) -> Json:
    prompt = str(request["messages"][-1]["content"])
    content = reply_to(prompt, sessions)
    usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(content) // 4}
    message = {"role": "assistant", "content": content}
    return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


def reply_to(prompt: str, sessions: Sequence[Json]) -> str:
    """Return the facts that the script proposes for the turns of a prompt, or that there is nothing."""
    session_id = _SESSION.search(prompt)
    script = next((item for item in sessions if item["turns"][0]["text"] in prompt), None)
    if session_id is None or script is None:
        return _NOTHING
    known_ids = {content: id_ for id_, content in _KNOWN.findall(prompt)}
    facts = [
        fact
        | {"sources": [[session_id[1], seq] for seq in fact["sources"]]}
        | ({"of": known_ids.get(fact["of"])} if "of" in fact else {})
        for fact in script["proposed"]
    ]
    return json.dumps({"facts": facts})
