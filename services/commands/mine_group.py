"""The commands `loci mine …`. Each imports what it needs when it runs, so that `loci --help` is fast."""

from pathlib import Path
from typing import Annotated

import typer

from services.commands import run_as_command

mining = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Facts out of conversations.")


@mining.callback()
def group() -> None:
    """Keep `evaluate` a subcommand while it is the only one."""


@mining.command("evaluate")
@run_as_command
def evaluate_mining(
    endpoint: Annotated[str, typer.Option("--endpoint", help="An OpenAI-compatible base URL.")],
    model: Annotated[str, typer.Option("--model", help="The name of the model at the endpoint.")] = "default",
    example: Annotated[
        Path | None,
        typer.Option("--example", exists=True, help="Labelled conversations like those of examples/mining."),
    ] = None,
) -> None:
    """Ask a model for the facts of labelled conversations: precision, recall, wrongly closed memories."""
    from services.commands.mining_evaluation import evaluate

    evaluate(endpoint, model, example)
