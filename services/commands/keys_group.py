"""The commands `loci keys …`. Each imports what it needs when it runs, so that `loci --help` is fast."""

from typing import Annotated

import typer

from services.commands import run_as_command

keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Create, list and revoke API keys.")


@keys.command("create")
@run_as_command
def create_key(
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant. Its first key creates it.")],
    agent: Annotated[str | None, typer.Option("--agent", help="Limit the key to an agent.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Limit the key to a user.")] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", help="Limit its working-memory writes to a namespace.")
    ] = None,
    scope: Annotated[
        str, typer.Option("--scope", help="Comma-separated rights: read, write, admin.")
    ] = "read,write",
    days: Annotated[
        float | None, typer.Option("--expires-in-days", help="Days until the key expires; never by default.")
    ] = None,
) -> None:
    """Create a key and print it to standard output. It is shown only once."""
    from services.commands.keys import create

    create(tenant, agent, user, namespace, scope, days)


@keys.command("list")
@run_as_command
def list_keys(
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only the keys of this tenant.")] = None,
) -> None:
    """List keys, without their secrets."""
    from services.commands.keys import show

    show(tenant)


@keys.command("revoke")
@run_as_command
def revoke_key(key_id: Annotated[str, typer.Argument(help="The id of a key, or the key itself.")]) -> None:
    """Revoke a key. The next request with it is refused."""
    from services.commands.keys import revoke

    revoke(key_id)
