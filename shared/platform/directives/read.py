"""Read a tenant's directives in a transaction of their own."""

from datetime import datetime

from shared.foundation.scope import Caller
from shared.platform.directives import files, queries
from shared.platform.directives.directive import Directive, DirectiveVersion
from shared.platform.directives.resolve import resolve
from shared.platform.resources import Resources


async def list_directives(resources: Resources, caller: Caller) -> list[Directive]:
    """Return all directives that apply to the caller's tenant now, by name."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return [await resolve(tx, resources.settings, name) for name in files.names()]


async def read_directive(resources: Resources, caller: Caller, name: str) -> Directive:
    """Return the directive that applies now. Raise errors.NotFound for an unknown name."""
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await resolve(tx, resources.settings, name)


async def list_versions(
    resources: Resources, caller: Caller, name: str, limit: int, after: tuple[datetime, str] | None
) -> list[DirectiveVersion]:
    """Return the versions of a directive that the tenant has set, newest first.

    `after` begins with `created_at` of the last version seen. Raise errors.NotFound for an unknown name.
    """
    files.check_name(name)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await queries.page(tx, name, limit, after)
