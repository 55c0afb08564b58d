"""Run the server without the rest of the command line: `python -m services.local.embeddings`."""

from pathlib import Path
from typing import Annotated

import typer

from services.local.embeddings import serve
from shared.foundation import errors


def main(
    port: Annotated[int, typer.Option(help="0 chooses a free port.")] = 8701,
    model: Annotated[Path | None, typer.Option(help="A model folder in Hugging Face layout.")] = None,
    host: str = "127.0.0.1",
) -> None:
    """Serve a local embedding model over OpenAI's protocol."""
    try:
        serve.run(port, model, host)
    except (errors.Misconfigured, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    typer.run(main)
