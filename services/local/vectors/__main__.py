"""Run the server: `python -m services.local.vectors --port 6333 --data DIR`. SIGTERM stops it cleanly."""

import argparse
import signal
from pathlib import Path

import uvicorn

from services.local.vectors.server import create_app


def main() -> None:
    """Serve until SIGTERM or SIGINT, then save and exit with status 0."""
    arguments = _parse_arguments()
    # uvicorn raises the signal again once it has stopped. Without a handler, an orderly stop would end
    # the process by that signal instead of with status 0.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    uvicorn.run(
        create_app(arguments.data),
        host=arguments.host,
        port=arguments.port,
        access_log=False,
        log_level="warning",
        # Clients keep connections open; a stop must not wait for them.
        timeout_graceful_shutdown=1,
    )


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m services.local.vectors", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True, help="the data directory, created if missing")
    parser.add_argument("--host", default="127.0.0.1")
    return parser.parse_args()


if __name__ == "__main__":
    main()
