"""The commands `loci patterns …`. Each imports what it needs when it runs, so that `loci --help` is fast."""

from typing import Annotated

import typer

from services.commands import run_as_command
from services.commands.options import Tenant

patterns = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Industry patterns, and the consent to share them."
)


@patterns.command("show")
@run_as_command
def show_patterns(
    tenant: Tenant = "default",
    flow: Annotated[str | None, typer.Option("--flow", help="Only patterns of this flow.")] = None,
) -> None:
    """Show whether a tenant shares patterns, and those that it sees."""
    from services.commands.patterns import show

    show(tenant, flow)


@patterns.command("consent")
@run_as_command
def consent(tenant: Tenant = "default") -> None:
    """Share the tenant's flows, ids of tools and outcomes, as numbers of tenants, and see those of others."""
    from services.commands.patterns import change_consent

    change_consent(tenant, is_given=True)


@patterns.command("withdraw")
@run_as_command
def withdraw(tenant: Tenant = "default") -> None:
    """Withdraw the consent: from now on the tenant is not counted, and sees nothing."""
    from services.commands.patterns import change_consent

    change_consent(tenant, is_given=False)
