"""Resolve the directive that applies to a tenant, and replace it by the tenant's own text."""

from shared.foundation import validation
from shared.foundation.config import Settings
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.directives import files, queries
from shared.platform.directives.directive import MAX_TEXT, Directive
from shared.platform.directives.files import read_file
from shared.platform.resources import Resources


async def resolve(tx: Transaction, settings: Settings, name: str) -> Directive:
    """Return the directive that applies to a tenant now. Raise errors.NotFound for an unknown name."""
    from_file = read_file(settings, tx.tenant, name)
    newest_version = await queries.newest(tx, name)
    return from_file if newest_version is None or newest_version.is_blank else newest_version.as_directive()


async def replace(resources: Resources, caller: Caller, name: str, text: str) -> Directive:
    """Set a tenant's own text, at most 100 000 characters, and return the directive that applies now.

    A blank text removes the tenant's own, so that the file applies again. A text that is set already
    makes no new version. Raise errors.NotFound for an unknown name, and errors.Forbidden for a bound
    key: a directive applies to every agent and user of the tenant.
    """
    rights.require_area(caller, Area.TENANT, Action.WRITE)
    files.check_name(name)
    new_text = validation.check_text(text, "text", MAX_TEXT, allow_blank=True).strip()
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        await queries.lock(tx, name)
        newest_version = await queries.newest(tx, name)
        if new_text != (newest_version.text if newest_version else ""):
            version = newest_version.version + 1 if newest_version else 1
            await queries.add(tx, name, version, new_text, caller.key_id)
        return await resolve(tx, resources.settings, name)
