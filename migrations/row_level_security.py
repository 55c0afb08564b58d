"""What every migration that creates a table says about who may use it.

A migration names its own tables; the policy and the grant are the same for all of them, so that no
table is forgotten or worded otherwise.
"""

from alembic import op

from shared.foundation import config

_TENANT = "tenant = nullif(current_setting('loci.tenant', true), '')"
_ALL_TENANTS = "current_setting('loci.tenant', true) = '*'"
BACKUP_ROLE = "loci_backup"


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
    backup_policy = f"CREATE POLICY backup ON {table} FOR SELECT TO {BACKUP_ROLE} USING (true)"
    _execute_if_backup_role_exists(backup_policy)
    grant(table)


def grant(table: str) -> None:
    """Let the processes' role read and write a table, and the backup role read it.

    Policy and grant of the backup role go together: without its policy `pg_dump` would leave out every
    row and succeed, and without the grant it fails.
    """
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role()}")
    let_backup_read(table)


def let_backup_read(table: str) -> None:
    """Let the backup role read a table, and the numbers that its identity column has reached."""
    _execute_if_backup_role_exists(f"GRANT SELECT ON {table} TO {BACKUP_ROLE}")
    _execute_if_backup_role_exists(f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO {BACKUP_ROLE}")


def _execute_if_backup_role_exists(statement: str) -> None:
    op.execute(
        f"""
        DO $$ BEGIN
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{BACKUP_ROLE}') THEN {statement}; END IF;
        END $$
        """
    )
