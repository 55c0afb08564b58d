"""What every migration that creates a table says about who may use it.

A migration names its own tables; the policy and the grant are the same for all of them, so that no
table is forgotten or worded otherwise.
"""

from alembic import op

from shared.foundation import config

_TENANT = "tenant = nullif(current_setting('loci.tenant', true), '')"
_ALL_TENANTS = "current_setting('loci.tenant', true) = '*'"


def role() -> str:
    """Return the role that Loci's processes act as."""
    return config.load().postgres_role or "loci_app"


def secure(table: str, *, fleet: bool = False) -> None:
    """Restrict a table to the rows of the transaction's tenant, and let the processes' role use it.

    A transaction that names no tenant sees no row. `fleet` is for tables without content: a
    transaction may read them across tenants by naming `*` as its tenant.
    """
    condition = f"({_TENANT} OR {_ALL_TENANTS})" if fleet else f"({_TENANT})"
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY tenant ON {table} USING {condition} WITH CHECK {condition}")
    grant(table)


def grant(table: str) -> None:
    """Let the processes' role read and write a table."""
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role()}")
