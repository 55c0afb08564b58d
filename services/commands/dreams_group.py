"""The commands `loci dreams …`. Each imports what it needs when it runs, so that `loci --help` is fast."""

from pathlib import Path
from typing import Annotated

import typer

from services.commands import run_as_command
from services.commands.options import Agent, Tenant, User

dreams = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Start, follow, show and undo dream runs."
)


@dreams.command("list")
@run_as_command
def list_dreams(tenant: Tenant = "default", agent: Agent = None, user: User = None) -> None:
    """List dream runs, newest first."""
    from services.commands.dreams import show_all

    show_all(tenant, agent, user)


@dreams.command("run")
@run_as_command
def run_dream(
    tenant: Tenant = "default",
    agent: Agent = None,
    user: User = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Run every pass, but change nothing.")] = False,  # noqa: FBT002
) -> None:
    """Start a run and print a line for each pass that ends."""
    from services.commands.dreams import follow

    follow(tenant, agent, user, dry_run=dry_run)


@dreams.command("show")
@run_as_command
def show_dream(run_id: str, tenant: Tenant = "default") -> None:
    """Show what a run read, proposed, rejected and changed."""
    from services.commands.dreams import show

    show(tenant, run_id)


@dreams.command("undo")
@run_as_command
def undo_dream(run_id: str, tenant: Tenant = "default") -> None:
    """Undo a run and print what could not be undone."""
    from services.commands.dreams import undo

    undo(tenant, run_id)


@dreams.command("evaluate")
@run_as_command
def evaluate_dreams(
    endpoint: Annotated[str, typer.Option("--endpoint", help="An OpenAI-compatible base URL.")],
    model: Annotated[str, typer.Option("--model", help="The name of the model at the endpoint.")] = "default",
    example: Annotated[
        Path | None, typer.Option("--example", exists=True, help="A folder like examples/dream.")
    ] = None,
) -> None:
    """Run dreams with a model over the example scope, and measure merges, prunes and lost facts."""
    from services.commands.dream_evaluation import evaluate

    evaluate(endpoint, model, example)
