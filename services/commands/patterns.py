"""The work of `loci patterns …`: show patterns, and give or withdraw a tenant's consent."""

import sys

from rich.console import Console
from rich.table import Table

from services.commands.resources import command_line_caller, with_resources
from shared.foundation import errors
from shared.memory.patterns import consent, read
from shared.memory.patterns.pattern import Consent, Pattern
from shared.platform.auth import queries as auth_queries
from shared.platform.resources import Resources

_MAX_LISTED = 1000


def show(tenant: str, flow: str | None) -> None:
    """Print the tenant's consent and a table of patterns, of one flow or of all."""
    state, patterns = with_resources(lambda resources: _read(resources, tenant, flow))
    _print_consent(tenant, state)
    if not state.consent:
        return
    table = Table("flow", "tools", "outcome", "tenants")
    for pattern in patterns:
        tools = " → ".join(pattern.tool_ids)
        table.add_row(pattern.flow_dact, tools, pattern.outcome, str(pattern.count))
    Console().print(table)


async def _read(resources: Resources, tenant: str, flow: str | None) -> tuple[Consent, list[Pattern]]:
    caller = command_line_caller(tenant)
    await _require_tenant(resources, tenant)
    state = await consent.read(resources, caller)
    return state, await read.list_patterns(resources, caller, flow, _MAX_LISTED, None)


def change_consent(tenant: str, *, is_given: bool) -> None:
    """Give or withdraw the tenant's consent, and print what holds now."""
    _print_consent(tenant, with_resources(lambda resources: _change(resources, tenant, is_given=is_given)))


async def _change(resources: Resources, tenant: str, *, is_given: bool) -> Consent:
    await _require_tenant(resources, tenant)
    return await consent.change(resources, command_line_caller(tenant), is_given=is_given)


async def _require_tenant(resources: Resources, tenant: str) -> None:
    """Raise errors.NotFound for a tenant that has no key: nobody consents for one by a slip of the pen."""
    async with resources.postgres.across_tenants() as tx:
        tenants = await auth_queries.list_tenants(tx)
    if tenant not in tenants:
        raise errors.NotFound(f"no tenant '{tenant}'")


def _print_consent(tenant: str, state: Consent) -> None:
    since = f" since {state.since:%Y-%m-%d %H:%M} UTC" if state.since else ""
    what = "shares patterns" if state.consent else "shares nothing"
    sys.stdout.write(f"tenant '{tenant}': {what}{since}\n")
