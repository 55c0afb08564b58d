"""The stand-in in a process of its own: started by `main`, programmed and read over HTTP.

    POST /_control  {"reset": true, "release": true, "dimension": 8,
                     "chat_default": "text" | {"kind": "Status", "code": 500}, "embedding_default": …,
                     "chat_replies": […], "embedding_replies": […]}        (all optional, in this order)
    GET  /_control  → {"calls": [{path, body, headers, behaviour, at}], "pending": {chat, embeddings}}

A function cannot be sent: `--reply package.module:function` names one that makes every chat reply.
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


def program(server: "ModelServer", order: Mapping[str, Any]) -> dict[str, Any]:
    """Do what is ordered and return the report."""
    if order.get("reset"):
        server.reset()
    if order.get("release"):
        server.release()
    server.dimension = order.get("dimension", server.dimension)
    if "chat_default" in order:
        server.chat_default = read(order["chat_default"])
    if "embedding_default" in order:
        server.embedding_default = read(order["embedding_default"])
    server.chat_replies.extend(map(read, order.get("chat_replies", [])))
    server.embedding_replies.extend(map(read, order.get("embedding_replies", [])))
    return report(server)


def report(server: "ModelServer") -> dict[str, Any]:
    """Return what has arrived and what is still planned."""
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
    """Serve until SIGINT or SIGTERM; print `ready <url>` once listening."""
    options = _options()
    # Before any thread starts, or a thread could take the signal that is waited for here.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    with kind(port=options.port, dimension=options.dimension, chat_default=_reply(options.reply)) as server:
        print(f"ready {server.url}", flush=True)  # noqa: T201 - who started the process waits for this line
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
