"""Become one of Loci's processes."""

from shared.foundation import config


def gateway() -> None:
    """Serve HTTP until told to stop, then let running requests end."""
    from services.gateway import drain
    from services.gateway.app import create_app

    settings = config.load()
    drain.serve(create_app(settings), settings)


def worker(queues: str, concurrency: int) -> None:
    """Consume queues in threads; gossip and mingle off, they only add ways to fail."""
    from workers.app import app

    argv = ["worker", "--pool", "threads", "--concurrency", str(concurrency), "--queues", queues]
    quiet = ["--without-gossip", "--without-mingle", "--loglevel", config.load().log_level, "-E"]
    app.worker_main([*argv, *quiet])


def beat() -> None:
    """Ring for sweeps."""
    from workers.app import app

    app.start(["beat", "--loglevel", config.load().log_level, "--pidfile="])


def flower() -> None:
    """Show the workers in a browser, to those who have the password."""
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
