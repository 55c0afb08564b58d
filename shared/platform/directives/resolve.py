"""Read the directive that holds for a tenant, and replace it or take the replacement back."""

from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation import errors, validation
from shared.foundation.config import Settings
from shared.foundation.scope import Caller
from shared.infra.postgres import Postgres
from shared.platform.directives import files, queries
from shared.platform.directives.directive import MAX_TEXT, Directive
from shared.platform.directives.files import read_file


async def resolve(connection: AsyncConnection, settings: Settings, tenant: str, name: str) -> Directive:
    """Return a directive as it stands for a tenant now; raise errors.NotFound for an unknown name."""
    from_file = read_file(settings, tenant, name)
    newest = await queries.newest(connection, tenant, name)
    return from_file if newest is None or newest.is_blank else newest.as_directive()


async def replace(settings: Settings, postgres: Postgres, caller: Caller, name: str, text: str) -> Directive:
    """Set a tenant's own text, at most 100 000 characters, and return what is in force now.

    A blank text takes the tenant's own away, and the file counts again. The same text again makes
    no new version. Raises errors.NotFound for an unknown name and errors.Forbidden for a key that
    is bound: a directive rules every agent and user of the tenant.
    """
    _check_unbound(caller)
    files.check_name(name)
    kept = validation.check_text(text, "text", MAX_TEXT, allow_blank=True).strip()
    async with postgres.for_tenant(caller.tenant) as connection:
        await queries.lock(connection, caller.tenant, name)
        newest = await queries.newest(connection, caller.tenant, name)
        if kept != (newest.text if newest else ""):
            number = newest.version + 1 if newest else 1
            await queries.add(connection, caller.tenant, name, number, kept, caller.key_id)
        return await resolve(connection, settings, caller.tenant, name)


def _check_unbound(caller: Caller) -> None:
    for field in ("agent_id", "user_id", "namespace"):
        bound = getattr(caller, field)
        if bound is not None:
            told = f"this key is bound to {field} '{bound}'; directives are the whole tenant's"
            raise errors.Forbidden(told)
