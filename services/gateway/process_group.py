"""Serve HTTP with several processes that share one listening socket: `loci serve --processes N`.

    parent   binds the socket → imports the gateway → forks the children → waits for one to end
    child    opens its own clients → accepts connections from the shared socket → serves, drains, exits

A child is a gateway like any other; the parent serves nothing. The children share the memory of what the
parent has imported, which is most of what a gateway needs. A stop signal to the parent makes every child
drain. A child that ends otherwise is replaced after a second, because requests go on in the others; only
if none was ever ready does the end of one end all, as it does without a parent. A child whose parent is
killed drains by itself.

The metrics of each child are in files of a temporary folder, which any of them sums for a response
(`prometheus_client`'s multiprocess mode). The files of a child that has ended stay, so counters never fall.
"""

import functools
import gc
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import structlog

from shared.foundation import errors
from shared.foundation.config import Settings
from shared.infra.telemetry import logs

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_REPLACE_AFTER_SECONDS = 1.0
_NOT_STARTED = 3  # the exit code of a gateway that has never served
log = structlog.get_logger()


def serve(settings: Settings, count: int) -> None:
    """Serve with `count` processes until a signal stops this one. Exit with 3 if none could start."""
    logs.set_up(settings)
    # A process that forks must have one thread, and numpy would start more when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with _bind(settings) as listener, tempfile.TemporaryDirectory(prefix="loci-metrics-") as folder:
        # Read by prometheus_client when it is imported, so before the gateway.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        from services.gateway import app, drain

        ready_file, stopping_file = Path(folder) / "ready", Path(folder) / "stopping"

        def run_child(parent: int) -> None:
            share = drain.Share(listener, parent, ready_file.touch, stopping_file.exists)
            drain.serve(app.create_app(settings), settings, share)

        def note_stop() -> None:
            stopping_file.touch()
            listener.close()  # or clients could connect after the last child has stopped listening

        gc.freeze()  # a collection would write to the pages that the children share
        group = _Group(functools.partial(run_child, os.getpid()), ready_file.exists, note_stop)
        was_ready = group.run(count)
    if not was_ready:
        log.critical("gateway_not_started")
        sys.exit(_NOT_STARTED)


def _bind(settings: Settings) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        raise errors.Misconfigured(f"can't listen on {settings.host}:{settings.port}: {error}") from None
    return listener


class _Group:
    """The children of this process."""

    def __init__(
        self, run_child: Callable[[], None], was_any_ready: Callable[[], bool], on_stop: Callable[[], None]
    ) -> None:
        self._run_child = run_child
        self._was_any_ready = was_any_ready
        self._on_stop = on_stop
        self._pids: set[int] = set()
        self._stopping = False

    def run(self, count: int) -> bool:
        """Fork the children, and wait until all have ended; tell whether one was ever ready."""
        for number in _STOP_SIGNALS:
            signal.signal(number, self._stop)
        for _ in range(count):
            self._fork()
        while self._pids:
            pid, status = os.waitpid(-1, 0)
            self._pids.discard(pid)
            if not self._stopping:
                self._replace(pid, os.waitstatus_to_exitcode(status))
        return self._was_any_ready()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        self._on_stop()
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def _replace(self, pid: int, code: int) -> None:
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]  # its gauges are not counted
        log.error("gateway_process_ended", pid=pid, code=code)
        if not self._was_any_ready():
            self._stop(signal.SIGTERM, None)
            return
        time.sleep(_REPLACE_AFTER_SECONDS)
        self._fork()

    def _fork(self) -> None:
        # A stop signal in between would miss the child, or the child would handle it as the parent does.
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        try:
            if not self._stopping:
                self._pids.add(os.fork() or self._become_child(previous_mask))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)

    def _become_child(self, mask: set[int | signal.Signals]) -> NoReturn:
        for number in _STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _run_to_end(self._run_child)


def _run_to_end(run: Callable[[], None]) -> NoReturn:
    """Run the child and end it, without the rest of the parent's stack."""
    code: object = 1
    try:
        run()
        code = 0
    except SystemExit as end:
        code = end.code
    except errors.LociError as error:
        sys.stderr.write(f"loci: {error}\n")
    except BaseException:  # noqa: BLE001  (nothing may return to the parent's code)
        traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else 1)
