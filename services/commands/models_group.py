"""The commands `loci models …`. Each imports what it needs when it runs, so that `loci --help` is fast."""

from typing import Annotated

import typer

from services.commands import run_as_command

models = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The models that Loci asks.")


@models.callback()
def group() -> None:
    """Keep `check` a subcommand while it is the only one."""


@models.command("check")
@run_as_command
def check_judge(
    endpoint: Annotated[str | None, typer.Option("--endpoint", help="An OpenAI-compatible base URL.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="The name of its model.")] = None,
) -> None:
    """Ask the judge 160 labelled questions, and say whether its verdicts can be trusted."""
    from services.commands.judge_check import check

    raise typer.Exit(check(endpoint, model))
