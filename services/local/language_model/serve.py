"""Run `loci serve-model`: start the model's server, restart it when it ends, stop it with this process."""

import sys
from pathlib import Path

import typer

from services.local import ports, signals
from services.local.language_model import files
from services.local.language_model.server import LanguageModelServer
from services.local.supervisor import Supervisor, supervise
from shared.foundation import config


def run(port: int, weights: Path | None) -> None:
    """Serve the model of the GGUF file `weights`, or the installed one, until SIGINT, SIGTERM or SIGHUP.

    Prints `ready http://127.0.0.1:port/v1 …` on standard output once a message was answered; port 0
    chooses a free one. Raises Misconfigured (nothing installed), PortTaken, or StartFailed with the end of
    the server's log.
    """
    data_dir = config.load().data_dir
    model_files = files.find(data_dir, weights)
    stop_signals = signals.Signals()
    folder = data_dir / "models" / f"server-{port}"
    server = LanguageModelServer(folder, model_files, port or None, signals=stop_signals)
    with signals.counting(stop_signals):
        try:
            server.start()
            _announce(server)
            supervise([Supervisor(server, _say)], stop_signals)
        except signals.Stopped:
            return
        except ports.PortTaken as error:
            raise ports.PortTaken(f"{error}: choose another with --port") from None
        finally:
            server.stop()


def _announce(server: LanguageModelServer) -> None:
    settings = server.client_settings
    values = " ".join(f"LOCI_{name.upper()}={value}" for name, value in settings.items())
    typer.echo(f"ready {server.url} ({settings['llm_model']})")
    _say(f"A stack that asks it: {values} loci up")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
