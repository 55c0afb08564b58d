"""The `loci` command. It starts things and asks things; it holds no rule about memory.

Every command imports what it needs when it runs, so that `loci --help` is quick and `migrate`
needs no web framework.
"""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from services.commands import entry_point
from services.commands.dreams_group import dreams
from services.commands.options import Agent, Tenant, User

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
keys = typer.Typer(no_args_is_help=True, help="Make, list and revoke keys.")
app.add_typer(keys, name="keys")
app.add_typer(dreams, name="dreams")


@app.command()
@entry_point
def up() -> None:
    """Run the whole of Loci on this machine until Ctrl-C."""
    from services.local.stack import Stack
    from shared.foundation import config

    raise typer.Exit(Stack(config.load()).run())


@app.command()
@entry_point
def demo(
    conversation: Annotated[
        Path | None, typer.Option("--conversation", exists=True, help="A transcript to play instead.")
    ] = None,
) -> None:
    """Play a conversation of two sessions and show what the second one remembers."""
    from services.commands.demo import play

    play(conversation)


@app.command()
@entry_point
def serve() -> None:
    """Run the gateway."""
    from services.commands.run import gateway

    gateway()


@app.command()
@entry_point
def work(
    queues: Annotated[
        str, typer.Option("--queues", help="Comma-separated queues; all if not given.")
    ] = "enrichment,embedding,dream,sweep",
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Tasks at once.")] = 4,
) -> None:
    """Run a worker."""
    from services.commands.run import worker

    worker(queues, concurrency)


@app.command()
@entry_point
def beat() -> None:
    """Run the clock that rings for sweeps."""
    from services.commands.run import beat

    beat()


@app.command()
@entry_point
def flower() -> None:
    """Run Flower, behind its password."""
    from services.commands.run import flower

    flower()


@app.command()
@entry_point
def migrate(
    wait: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for Postgres.")] = 0,
) -> None:
    """Bring the schema of Postgres up to date, as its owner."""
    from services.commands.migrate import upgrade
    from services.commands.wait import wait_for_postgres

    if wait:
        wait_for_postgres(wait)
    upgrade()


@app.command(name="wait-for-schema")
@entry_point
def wait_for_schema(
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Seconds to wait at most.")] = 300,
) -> None:
    """Wait until the schema of Postgres is this release's or newer."""
    from services.commands.wait import wait_for_schema

    wait_for_schema(timeout)


@app.command()
@entry_point
def alive(
    max_age: Annotated[float, typer.Option("--max-age", min=0, help="Seconds a heartbeat counts.")] = 300,
) -> None:
    """Tell by the exit code whether the process beside this one lives: a probe for containers."""
    from services.commands.alive import check_alive

    check_alive(max_age)


@app.command()
@entry_point
def reindex(
    kind: Annotated[
        str | None, typer.Option("--kind", help="memory, turn, desk or observation; all if not given.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is in use.")] = True,  # noqa: FBT002
) -> None:
    """Rebuild the index beside the one in use and swap, while searches and saves go on."""
    from services.commands.reindex import rebuild

    rebuild(kind, wait=wait)


@app.command()
@entry_point
def doctor() -> None:
    """Tell what is configured, what answers, which model is used and what is behind."""
    from services.commands.doctor import run_checks

    raise typer.Exit(run_checks())


@app.command()
@entry_point
def export(
    tenant: Tenant = "default",
    agent: Agent = None,
    user: User = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file; else standard output.")
    ] = None,
) -> None:
    """Write a scope's long-term memory as NDJSON."""
    from services.commands.transfer import export_memories

    export_memories(tenant, agent, user, output)


@app.command(name="import")
@entry_point
def import_(
    path: Annotated[
        Path, typer.Argument(exists=True, help="NDJSON, a RockBot memory folder, or turns.jsonl.")
    ],
    tenant: Tenant = "default",
    agent: Agent = None,
    user: User = None,
    restore: Annotated[bool, typer.Option("--restore", help="Bring back what was deleted, too.")] = False,  # noqa: FBT002
) -> None:
    """Take in long-term memory or conversations."""
    from services.commands.transfer import import_memories

    import_memories(path, tenant, agent, user, restore=restore)


@app.command(name="serve-embeddings")
@entry_point
def serve_embeddings(
    port: Annotated[int, typer.Option("--port", min=0, max=65535)] = 8701,
    model: Annotated[Path | None, typer.Option("--model", exists=True, help="A model's folder.")] = None,
) -> None:
    """Serve a small local embedding model, OpenAI-compatible (extra `local-embeddings`)."""
    from services.local.embeddings.serve import run

    run(port, model)


@app.command()
@entry_point
def spend(
    tenant: Tenant = "default",
    by: Annotated[
        str, typer.Option("--by", help="Some of agent, session, user, purpose, model, day.")
    ] = "purpose,model",
    agent: Agent = None,
    user: User = None,
    since: Annotated[datetime | None, typer.Option("--since", help="From this day or time on, UTC.")] = None,
    until: Annotated[datetime | None, typer.Option("--until", help="Before this day or time, UTC.")] = None,
) -> None:
    """Print what was spent as a table, and the budgets of today and of this month."""
    from services.commands.spend import show

    show(tenant, by, {"agent_id": agent, "user_id": user}, since, until)


@keys.command("create")
@entry_point
def create_key(
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant; it exists from its first key on.")],
    agent: Annotated[str | None, typer.Option("--agent", help="Bind the key to an agent.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Bind the key to a user.")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", help="Bind its desk writes.")] = None,
    scope: Annotated[
        str, typer.Option("--scope", help="Comma-separated: read, write, admin.")
    ] = "read,write",
    days: Annotated[float | None, typer.Option("--expires-in-days", help="Days it is valid.")] = None,
) -> None:
    """Make a key and print it, once, alone on standard output."""
    from services.commands.keys import create

    create(tenant, agent, user, namespace, scope, days)


@keys.command("list")
@entry_point
def list_keys(
    tenant: Annotated[str | None, typer.Option("--tenant", help="One tenant only.")] = None,
) -> None:
    """List keys, without their secrets."""
    from services.commands.keys import show

    show(tenant)


@keys.command("revoke")
@entry_point
def revoke_key(key_id: Annotated[str, typer.Argument(help="The id of a key, or the key itself.")]) -> None:
    """Revoke a key: the next request with it is refused."""
    from services.commands.keys import revoke

    revoke(key_id)


@keys.command("ensure-dev", hidden=True)
@entry_point
def ensure_dev_key() -> None:
    """Write a working development key to the data directory, unless one is there."""
    from services.commands.keys import ensure_dev

    ensure_dev()


if __name__ == "__main__":
    app()
