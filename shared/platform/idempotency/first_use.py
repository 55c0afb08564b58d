"""Note what an idempotency key was used for: that of a request whose parts have keys of their own."""

from shared.infra.postgres import Postgres
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent


async def note(postgres: Postgres, tenant: str, key: IdempotencyKey | None) -> None:
    """Note the use of a key. Raise errors.Conflict if it was used with another body."""
    if key is None:
        return
    async with postgres.for_tenant(tenant) as tx, idempotent(tx, key) as request:
        if request.stored is None:
            await request.store({})
