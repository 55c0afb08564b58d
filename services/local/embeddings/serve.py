"""`loci serve-embeddings`: load the model, say that it is ready, answer until told to stop.

The port is bound before the model is loaded, so a taken port fails in milliseconds, and port 0
(any free one) can be announced.
"""

import socket
from importlib.util import find_spec
from pathlib import Path

import typer
import uvicorn

from shared.foundation import config, errors

_EXTRA = ("onnx", "onnxruntime", "safetensors", "tokenizers")


def run(port: int, model: Path | None, host: str = "127.0.0.1") -> None:
    """Serve the model in folder `model`, or the packaged one, until SIGINT or SIGTERM.

    Prints `ready http://host:port/v1 …` on standard output once requests would be answered; port 0
    takes a free one. Raises Misconfigured (extra or model missing) or OSError (port taken).
    """
    _require_extra()
    # Only here: the base install lacks these packages, and `loci --help` must not wait for them.
    from services.local.embeddings import api, encoder
    from services.local.embeddings.model import find

    served = find(model)
    with socket.create_server((host, port), backlog=512) as listener:
        loaded = encoder.Encoder(served, config.load().data_dir / "models")
        address = f"http://{host}:{listener.getsockname()[1]}/v1"
        typer.echo(f"ready {address} ({served.name}, {served.dimension} dimensions)")
        try:
            settings = uvicorn.Config(api.create_app(loaded), log_level="warning", access_log=False)
            uvicorn.Server(settings).run(sockets=[listener])
        finally:
            loaded.close()


def _require_extra() -> None:
    missing = [package for package in _EXTRA if find_spec(package) is None]
    if missing:
        raise errors.Misconfigured(
            f"{', '.join(missing)} not installed: run `pip install 'loci[local-embeddings]'`"
        )
