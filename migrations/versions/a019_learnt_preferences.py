"""Create what preferences and playbooks need to go on with the memory or the turns that they come from."""

from alembic import op
from sqlalchemy import Column, Integer

revision = "a019"
down_revision = "a018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this migration."""
    op.add_column("playbook", Column("first_seq", Integer))
    # What has a worker's successors goes on as those. An end that is over ends the chain: what follows a
    # closed memory says something else.
    op.execute(
        """
        CREATE FUNCTION memory_stands(text, text) RETURNS boolean LANGUAGE sql STABLE STRICT
        AS $$
            WITH RECURSIVE heir (id) AS (
                SELECT $2
                UNION
                SELECT successor.id
                FROM heir JOIN memory m ON m.tenant = $1 AND m.id = heir.id
                CROSS JOIN LATERAL unnest(m.superseded_by) AS successor (id)
                WHERE m.archived_at IS NOT NULL AND m.archived_by IS DISTINCT FROM 'caller'
                  AND m.valid_until IS NULL
            )
            SELECT EXISTS (
                SELECT FROM heir JOIN memory m ON m.tenant = $1 AND m.id = heir.id
                WHERE m.archived_at IS NULL AND (m.expires_at IS NULL OR m.expires_at > now())
                  AND (m.valid_from IS NULL OR m.valid_from <= now())
                  AND (m.valid_until IS NULL OR m.valid_until > now())
            )
        $$
        """
    )


def downgrade() -> None:
    """Revert this migration."""
    op.execute("DROP FUNCTION memory_stands(text, text)")
    op.drop_column("playbook", "first_seq")
