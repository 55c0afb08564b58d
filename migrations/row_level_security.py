"""Close tables to every transaction that does not name a tenant: for each step that makes one.

A step names its own tables; the policy is one and the same for all, so that none is forgotten or
worded otherwise.
"""

from alembic import op

from shared.foundation import config

_MINE = "tenant = nullif(current_setting('loci.tenant', true), '')"
_FLEET = "current_setting('loci.tenant', true) = '*'"


def role() -> str:
    """Return the role that Loci's processes act as."""
    return config.load().postgres_role or "loci_app"


def secure(table: str, *, fleet: bool = False) -> None:
    """Show a transaction the rows of the tenant that it names, and of none if it names none.

    `fleet` is for tables without content: a transaction may read them across tenants by saying so.
    """
    allowed = f"({_MINE} OR {_FLEET})" if fleet else f"({_MINE})"
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY tenant ON {table} USING {allowed} WITH CHECK {allowed}")


def open_to_role(table: str) -> None:
    """Let the processes' role work with a table that was made after the first step granted all there were."""
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role()}")
