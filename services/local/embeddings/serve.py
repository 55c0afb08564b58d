"""Run `loci serve-embeddings`: load the model, print that it is ready, serve until a stop signal.

The port is bound before the model is loaded. So a port in use is an error within milliseconds, and
the number that port 0 (any free port) stands for can be printed.
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

    Prints `ready http://host:port/v1 …` on standard output when it accepts requests; port 0 chooses
    a free one. Raises Misconfigured (extra or model missing) or OSError (port in use).
    """
    _require_extra()
    # Imported late: the base installation lacks these packages, and `loci --help` must not wait for them.
    from services.local.embeddings import api, encoder
    from services.local.embeddings.model import find

    served_model = find(model)
    with socket.create_server((host, port), backlog=512) as listener:
        model_encoder = encoder.Encoder(served_model, config.load().data_dir / "models")
        address = f"http://{host}:{listener.getsockname()[1]}/v1"
        typer.echo(f"ready {address} ({served_model.name}, {served_model.dimension} dimensions)")
        try:
            settings = uvicorn.Config(api.create_app(model_encoder), log_level="warning", access_log=False)
            uvicorn.Server(settings).run(sockets=[listener])
        finally:
            model_encoder.close()


def _require_extra() -> None:
    missing_packages = [package for package in _EXTRA if find_spec(package) is None]
    if missing_packages:
        raise errors.Misconfigured(
            f"{', '.join(missing_packages)} not installed: run `pip install 'loci[local-embeddings]'`"
        )
