"""Fork Python programs on demand: a start takes 50 ms instead of 2 to 4 s, so a test can start hundreds.

This process imports what gateway, workers and commands import, opens no connection, and then executes
orders. An order is one line of JSON on standard input, and so is the response on standard output. `start`
runs a module as `python -m` does, with nothing on its standard input and its output in files:

    {"do": "start", "module": "services.cli", "arguments": ["work"], "env": {…}, "out": path, "err": path}
                                                      → {"pid": 7}
    {"do": "look", "pid": 7}                          → {"code": null while it runs, else the exit code}

A program has a session of its own, so that its whole process group can be killed. All programs end
when the standard input ends.
"""

import asyncio
import gc
import importlib
import json
import os
import runpy
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

import httpx
from fastapi import FastAPI

# All but `workers.app`, which reads the settings when it is imported, and what is run itself.
_PRELOADED = (
    "services.commands.doctor",
    "services.commands.dreams_group",
    "services.commands.keys_group",
    "services.commands.mcp_group",
    "services.commands.migrate",
    "services.commands.mine_group",
    "services.commands.patterns_group",
    "services.commands.reindex",
    "services.commands.run",
    "services.gateway.app",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.concurrency.thread",
    "celery.fixups.django",
    "celery.worker.consumer",
    "kombu.transport.redis",
    "qdrant_client",
    "shared.lifecycle.reindex.rebuild",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "workers.dream.passes",
    "workers.enrichment.enrich",
    "workers.runtime.startup",
)


def main() -> None:
    """Execute orders until the standard input ends."""
    for name in _PRELOADED:
        importlib.import_module(name)
    asyncio.run(_build_routes())
    gc.freeze()  # a collection would write to the pages that the children share
    children: dict[int, int | None] = {}
    for line in sys.stdin:
        order = json.loads(line)
        _respond(_start(children, order) if order["do"] == "start" else _exit_code(children, order["pid"]))
    for pid in [pid for pid, code in children.items() if code is None]:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


async def _build_routes() -> None:
    """Let FastAPI build what it builds of each route at the first request: a third of a second."""
    from services.gateway.app import _API

    gateway = FastAPI()
    gateway.include_router(_API)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(gateway), base_url="http://gateway") as client:
        await client.get("/v1/none")


def _respond(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _start(children: dict[int, int | None], order: dict[str, Any]) -> dict[str, Any]:
    pid = os.fork()
    if pid == 0:
        _run_program(order)
    children[pid] = None
    return {"pid": pid}


def _exit_code(children: dict[int, int | None], pid: int) -> dict[str, Any]:
    if children[pid] is None:
        ended, status = os.waitpid(pid, os.WNOHANG)
        children[pid] = os.waitstatus_to_exitcode(status) if ended else None
    return {"code": children[pid]}


def _run_program(order: dict[str, Any]) -> NoReturn:
    os.setsid()
    silence = os.open(os.devnull, os.O_RDONLY)
    out, err = [
        os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for name in ("out", "err")
    ]
    for descriptor, source in ((0, silence), (1, out), (2, err)):
        os.dup2(source, descriptor)
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv[1:] = order["arguments"]
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
