"""The `loci` command: its subcommands with their options. `services.commands` implements them.

Every command imports what it needs when it runs, so that `loci --help` is fast and `migrate` loads
no web framework.
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from services.commands import run_as_command
from services.commands.dreams_group import dreams
from services.commands.keys_group import keys
from services.commands.mcp_group import mcp
from services.commands.mine_group import mining
from services.commands.models_group import models
from services.commands.options import Agent, DemoModel, Tenant, User
from services.commands.patterns_group import patterns

# Help without colours: importing rich takes longer than all else that `loci --help` does.
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 110},
)
app.add_typer(keys, name="keys")
app.add_typer(dreams, name="dreams")
app.add_typer(mining, name="mine")
app.add_typer(models, name="models")
app.add_typer(mcp, name="mcp")
app.add_typer(patterns, name="patterns")


@app.command()
@run_as_command
def up() -> None:
    """Run all of Loci on this machine until Ctrl-C."""
    from services.commands.run import stack

    raise typer.Exit(stack())


@app.command()
@run_as_command
def demo(
    conversation: Annotated[
        Path | None,
        typer.Option("--conversation", exists=True, help="A transcript to replay instead of the example."),
    ] = None,
    model: Annotated[
        DemoModel | None,
        typer.Option("--model", help="Show what the model of `make local-model` makes of it."),
    ] = None,
) -> None:
    """Replay a conversation of two sessions and show what the second one recalls of the first."""
    if model is DemoModel.LOCAL:
        from services.commands.demo_model import play
    else:
        from services.commands.demo import play

    play(conversation)


@app.command()
@run_as_command
def serve(
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", min=1, help="Processes behind one socket. Default: LOCI_GATEWAY_PROCESSES."
        ),
    ] = None,
) -> None:
    """Run the gateway, which serves the HTTP API."""
    from services.commands.run import gateway

    gateway(processes)


@app.command()
@run_as_command
def work(
    queues: Annotated[
        str, typer.Option("--queues", help="Comma-separated queues; all by default.")
    ] = "enrichment,embedding,documents,summary,dream,sweep",
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, help="Number of tasks that run at the same time.")
    ] = 4,
) -> None:
    """Run a worker, which consumes tasks from the queues."""
    from services.commands.run import worker

    worker(queues, concurrency)


@app.command()
@run_as_command
def beat() -> None:
    """Run Celery beat, which publishes the periodic tasks."""
    from services.commands.run import beat

    beat()


@app.command()
@run_as_command
def flower() -> None:
    """Run Flower, the web interface of the workers. It asks for a password."""
    from services.commands.run import flower

    flower()


@app.command()
@run_as_command
def migrate(
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Wait up to this many seconds for Postgres.")
    ] = 0,
    dev_key: Annotated[bool, typer.Option("--dev-key", hidden=True)] = False,  # noqa: FBT002  (for `loci up`)
) -> None:
    """Bring the schema of Postgres up to date. This needs the rights of the schema's owner."""
    from services.commands.migrate import upgrade

    if wait:
        from services.commands.wait import wait_for_postgres

        wait_for_postgres(wait)
    upgrade()
    if dev_key:
        from services.commands.keys import ensure_dev

        if ensure_dev():
            from services.commands.reindex import prepare

            prepare()


@app.command(name="wait-for-schema")
@run_as_command
def wait_for_schema(
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Wait at most this many seconds.")] = 300,
) -> None:
    """Wait until the schema of Postgres is that of this release or newer."""
    from services.commands.wait import wait_for_schema

    wait_for_schema(timeout)


@app.command()
@run_as_command
def alive(
    max_age: Annotated[
        float, typer.Option("--max-age", min=0, help="Maximum age of a heartbeat in seconds.")
    ] = 300,
) -> None:
    """Exit with 0 if the process of this container is alive, otherwise with 1. Use it as a probe."""
    from services.commands.alive import check_alive

    check_alive(max_age)


@app.command()
@run_as_command
def reindex(
    kind: Annotated[
        str | None, typer.Option("--kind", help="memory, turn, working or observation; all by default.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the swap.")] = True,  # noqa: FBT002
) -> None:
    """Rebuild the search index while the current one stays in use, then swap them."""
    from services.commands.reindex import rebuild

    rebuild(kind, wait=wait)


@app.command()
@run_as_command
def doctor() -> None:
    """Check what is configured, what answers, which models are in use, and how many jobs are pending."""
    from services.commands.doctor import run_checks

    raise typer.Exit(run_checks())


@app.command()
@run_as_command
def settings(
    markdown: Annotated[  # noqa: FBT002
        bool, typer.Option("--markdown", help="Print docs/CONFIGURATION.md instead of the values in force.")
    ] = False,
) -> None:
    """Show every setting with its value, and name variables that are no setting."""
    from services.commands.settings import page, show

    if markdown:
        typer.echo(page(), nl=False)
    else:
        show()


@app.command()
@run_as_command
def export(
    tenant: Tenant = "default",
    agent: Agent = None,
    user: User = None,
    kinds: Annotated[
        str | None,
        typer.Option("--kinds", help="Some kinds of records, such as memory,session,turn; all by default."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; standard output by default.")
    ] = None,
) -> None:
    """Export every record of an agent or user as NDJSON, as GET /v1/export does."""
    from services.commands.transfer import export_records

    export_records(tenant, agent, user, kinds, output)


@app.command(name="import")
@run_as_command
def import_(
    path: Annotated[
        Path,
        typer.Argument(exists=True, help="The file of an export, a RockBot folder, or its turns.jsonl."),
    ],
    tenant: Tenant = "default",
    agent: Agent = None,
    user: User = None,
    restore: Annotated[bool, typer.Option("--restore", help="Also import deleted memories.")] = False,  # noqa: FBT002
) -> None:
    """Import records by their ids, as POST /v1/import does: a repeated import changes nothing."""
    from services.commands.transfer import import_records

    import_records(path, tenant, agent, user, restore=restore)


@app.command(name="serve-embeddings")
@run_as_command
def serve_embeddings(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 picks a free one.")
    ] = 8701,
    model: Annotated[Path | None, typer.Option("--model", exists=True, help="The folder of a model.")] = None,
) -> None:
    """Serve a small embedding model with an OpenAI-compatible API. Needs the extra `local-embeddings`."""
    from services.local.embeddings.serve import run

    run(port, model)


@app.command(name="serve-model")
@run_as_command
def serve_model(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The port to listen on; 0 picks a free one.")
    ] = 8702,
    model: Annotated[
        Path | None, typer.Option("--model", exists=True, dir_okay=False, help="The weights, a GGUF file.")
    ] = None,
) -> None:
    """Serve a small language model with an OpenAI-compatible API. Needs `make local-model`."""
    from services.local.language_model.serve import run

    run(port, model)


@app.command()
@run_as_command
def spend(
    tenant: Tenant = "default",
    by: Annotated[
        str, typer.Option("--by", help="Comma-separated groups: agent, session, user, purpose, model, day.")
    ] = "purpose,model",
    agent: Agent = None,
    user: User = None,
    since: Annotated[
        datetime | None, typer.Option("--since", help="Only charges since this day or time, in UTC.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option("--until", help="Only charges before this day or time, in UTC.")
    ] = None,
) -> None:
    """Print the spend of a tenant as a table, and its budgets of today and of this month."""
    from services.commands.spend import show

    show(tenant, by, {"agent_id": agent, "user_id": user}, since, until)


if __name__ == "__main__":
    app()
