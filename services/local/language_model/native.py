"""Serve a model with llama.cpp's own server: `python -m services.local.language_model.native`.

The package with the server is below the data directory (`files`). A crash of its native code ends only this
process, which `server` has started and starts again.
"""

import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from services.local import ports
from services.local.language_model import files


def main(
    packages: Annotated[Path, typer.Option(help="The folder with the package of the server.")],
    model: Annotated[Path, typer.Option(help="A GGUF file.")],
    alias: Annotated[str, typer.Option(help="The name under which it is served.")],
    port: Annotated[int, typer.Option()],
    context_tokens: Annotated[int, typer.Option(help="Shared by the requests that run at once.")],
    parallel: Annotated[int, typer.Option(help="Requests that run at once.")],
    threads: Annotated[int, typer.Option()],
) -> None:
    """Serve until a signal ends the process."""
    sys.path.append(str(packages))  # after all that is installed, so that it replaces nothing of it
    native: Any = import_module(files.SERVER)
    params = native.CommonParams()
    params.model.path = str(model)
    params.model_alias = {alias}
    params.hostnames = [ports.HOST]
    params.port = port
    params.n_ctx = context_tokens
    params.n_parallel = parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.ui = False
    params.offline = True  # it fetches nothing by itself
    server = native.Server(params)
    typer.echo(f"{alias} at {server.listening_address}")
    threading.Event().wait()


if __name__ == "__main__":
    typer.run(main)
