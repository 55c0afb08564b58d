"""Run one of Loci's processes in the current process."""

import logging
import os
import sys

from services.commands.lean_imports import leave_out_rich
from shared.foundation import config

_MAX_DEFAULT_PROCESSES = 4  # each has connections of its own to every database


def gateway(processes: int | None = None) -> None:
    """Serve HTTP until a signal stops the process, then finish the running requests.

    `processes` goes before the setting; without both, there is one process for each two cores, at most four.
    """
    leave_out_rich()
    settings = config.load()
    count = processes or settings.gateway_processes or _default_gateway_processes()
    if count > 1:
        from services.gateway import process_group

        process_group.serve(settings, count)
        return
    from services.gateway import drain
    from services.gateway.app import create_app

    drain.serve(create_app(settings), settings)


def _default_gateway_processes() -> int:
    # The databases and the workers need the other half of a machine that runs all of Loci.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(_MAX_DEFAULT_PROCESSES, cores // 2))


def stack() -> int:
    """Run all processes on this machine until a signal; return the exit code.

    Raises errors.Misconfigured before anything is started if its workers could not work with the settings.
    """
    from services.local.stack import Stack
    from workers.runtime import startup

    settings = config.load()
    startup.require_usable(settings)
    return Stack(settings).run()


def worker(queues: str, concurrency: int) -> None:
    """Consume queues in threads. Gossip and mingle are off: Loci does not use them, and they can fail."""
    leave_out_rich()
    from workers.app import app
    from workers.runtime import startup

    settings = config.load()
    startup.require_usable(settings)
    # Not by the `celery` command: it imports all of its subcommands, and Flower with them.
    consumer = app.Worker(
        pool_cls="threads",
        concurrency=concurrency,
        queues=queues.split(","),
        loglevel=logging.getLevelNamesMapping().get(settings.log_level.upper(), logging.INFO),
        without_gossip=True,
        without_mingle=True,
        task_events=True,
    )
    consumer.start()
    sys.exit(consumer.exitcode)


def beat() -> None:
    """Run Celery beat, which publishes the periodic tasks."""
    leave_out_rich()
    from workers.runtime import beat as beat_process

    beat_process.run(config.load())


def flower() -> None:
    """Serve Flower. Raise errors.Misconfigured if no password is set, because it must not be open to all."""
    settings = config.load()
    password = config.require_setting(settings.flower_password, "LOCI_FLOWER_PASSWORD")
    leave_out_rich()
    from workers.runtime import flower as flower_process

    options = [
        f"--address={settings.host}",
        f"--port={settings.flower_port}",
        f"--basic-auth={settings.flower_user}:{password}",
        "--natural-time=True",
        "--tasks-columns=name,state,kwargs,result,started,runtime,worker,uuid",
        "--max-tasks=20000",
    ]
    flower_process.run(settings, options)
