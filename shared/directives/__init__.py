"""Directives: what models are told to do, as texts that an operator or a tenant can replace.

Looked for at every run, so a changed text needs no restart. The first that is there counts:

1. what the tenant has set by the API, its newest version (`PUT /v1/directives/{name}`);
2. `<LOCI_DIRECTIVES_DIR>/<tenant>/<name>.md`, then `<LOCI_DIRECTIVES_DIR>/<name>.md`;
3. the one beside this module.

A blank text at any step means "not here": setting a blank one by the API goes back to the file,
and the history keeps what stood before. A run writes down the name and the version that it
followed, and the digest tells whether two runs followed the same words.
"""

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.config import Settings
from shared.directives import store
from shared.directives.files import look_up, names
from shared.directives.record import Directive

__all__ = ["current", "names"]


async def current(connection: AsyncConnection, settings: Settings, tenant: str, name: str) -> Directive:
    """Return a directive as it stands for a tenant now; raise errors.NotFound for an unknown name."""
    from_file = look_up(settings, tenant, name)
    newest = await store.newest(connection, tenant, name)
    return from_file if newest is None or newest.is_blank else newest.in_force()
