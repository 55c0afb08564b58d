"""Run the stand-in in another process, where it is programmed and read over HTTP.

    POST /_control  {"reset": true, "release": true, "dimension": 8,
                     "chat_default": "text" | {"kind": "Status", "code": 500}, "embedding_default": …,
                     "chat_replies": […], "embedding_replies": […]}        (all optional, done in this order)
    GET  /_control  → {"calls": [{path, body, headers, behaviour, at}], "pending": {chat, embeddings}}

A function cannot be sent. `--reply package.module:function` names one that returns every chat reply.
"""

import argparse
import signal
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tests.standins.behaviours import Reply, read

if TYPE_CHECKING:
    from tests.standins.models import ModelServer

PATH = "/_control"
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def program(server: "ModelServer", command: Mapping[str, Any]) -> dict[str, Any]:
    """Execute a command and return the report."""
    if command.get("reset"):
        server.reset()
    if command.get("release"):
        server.release()
    server.dimension = command.get("dimension", server.dimension)
    if "chat_default" in command:
        server.chat_default = read(command["chat_default"])
    if "embedding_default" in command:
        server.embedding_default = read(command["embedding_default"])
    server.chat_replies.extend(map(read, command.get("chat_replies", [])))
    server.embedding_replies.extend(map(read, command.get("embedding_replies", [])))
    return report(server)


def report(server: "ModelServer") -> dict[str, Any]:
    """Return the calls that have arrived and the number of planned replies."""
    calls = [
        {
            "path": call.path,
            "body": call.body,
            "headers": dict(call.headers),
            "behaviour": type(call.behaviour).__name__,
            "at": call.at,
        }
        for call in server.calls
    ]
    pending = {"chat": len(server.chat_replies), "embeddings": len(server.embedding_replies)}
    return {"calls": calls, "pending": pending}


def main(kind: "type[ModelServer]") -> None:
    """Serve until SIGINT or SIGTERM; print `ready <url>` as soon as the server listens."""
    options = _options()
    # Before any thread starts; otherwise a thread could receive the signal that this function waits for.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    with kind(port=options.port, dimension=options.dimension, chat_default=_reply(options.reply)) as server:
        print(f"ready {server.url}", flush=True)  # noqa: T201 - the parent process waits for this line
        signal.sigwait(_SIGNALS)


def _reply(name: str | None) -> Reply | None:
    if name is None:
        return None
    module, _, function = name.partition(":")
    return Reply(getattr(import_module(module), function))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.standins.models", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--dimension", type=int, default=64)
    parser.add_argument("--reply", help="package.module:function, called with each chat request")
    return parser.parse_args()
