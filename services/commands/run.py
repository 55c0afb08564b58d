"""Run one of Loci's processes in the current process."""

from shared.foundation import config


def gateway() -> None:
    """Serve HTTP until a signal stops the process, then finish the running requests."""
    from services.gateway import drain
    from services.gateway.app import create_app

    settings = config.load()
    drain.serve(create_app(settings), settings)


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
    from workers.app import app
    from workers.runtime import startup

    startup.require_usable(config.load())
    argv = ["worker", "--pool", "threads", "--concurrency", str(concurrency), "--queues", queues]
    options = ["--without-gossip", "--without-mingle", "--loglevel", config.load().log_level, "-E"]
    app.worker_main([*argv, *options])


def beat() -> None:
    """Run Celery beat, which publishes the periodic tasks."""
    from workers.app import app

    app.start(["beat", "--loglevel", config.load().log_level, "--pidfile="])


def flower() -> None:
    """Serve Flower. Raise errors.Misconfigured if no password is set, because it must not be open to all."""
    settings = config.load()
    password = config.require_setting(settings.flower_password, "LOCI_FLOWER_PASSWORD")
    from workers.app import app

    app.start(
        [
            "flower",
            f"--address={settings.host}",
            f"--port={settings.flower_port}",
            f"--basic-auth={settings.flower_user}:{password}",
            "--natural-time=True",
            "--tasks-columns=name,state,kwargs,result,started,runtime,worker,uuid",
            "--max-tasks=20000",
        ]
    )
