"""Fork Loci's programs on demand: a start takes 50 ms instead of 4 s, so a test can kill hundreds.

This process imports what gateway and workers import, opens no connection, and then executes orders.
An order is one line of JSON on standard input, and so is the response on standard output:

    {"do": "start", "role": "serve" | "work" | "beat", "env": {…}, "log": path}   → {"pid": 7}
    {"do": "look", "pid": 7}                          → {"code": null while it runs, else the exit code}

A program has a session of its own, so that its whole process group can be killed. All programs end
when the standard input ends.
"""

import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

from services.commands import run

# All but `workers.app` itself, which reads the settings when it is imported.
_PRELOADED = (
    "services.gateway.app",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.concurrency.thread",
    "celery.fixups.django",
    "celery.worker.consumer",
    "kombu.transport.redis",
    "shared.lifecycle.reindex.rebuild",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
)
_ROLES = {
    "serve": run.gateway,
    "work": lambda: run.worker("enrichment,embedding,documents,summary,dream,sweep", 4),
    "beat": run.beat,
}


def main() -> None:
    """Execute orders until the standard input ends."""
    for name in _PRELOADED:
        importlib.import_module(name)
    children: dict[int, int | None] = {}
    for line in sys.stdin:
        order = json.loads(line)
        _respond(_start(children, order) if order["do"] == "start" else _exit_code(children, order["pid"]))
    for pid in [pid for pid, code in children.items() if code is None]:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


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
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor, source in ((0, silence), (1, log), (2, log)):
        os.dup2(source, descriptor)
    os.environ.clear()
    os.environ.update(order["env"])
    _ROLES[order["role"]]()
    sys.exit(0)


if __name__ == "__main__":
    main()
