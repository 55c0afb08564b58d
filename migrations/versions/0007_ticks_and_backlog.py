"""Rings of the clock, and what a scaler may ask: how many rows of some stages are due or in work.

A function that acts as its owner, so that a scaler's login can have this number and nothing else:
no row, no tenant's name.
"""

import sqlalchemy as sa
from alembic import op

from migrations import row_level_security

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply this step."""
    op.create_table(
        "tick",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("followed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("kind", name=op.f("tick_pkey")),
    )
    row_level_security.open_to_role("tick")
    op.execute("CREATE POLICY backlog ON work FOR SELECT TO CURRENT_USER USING (true)")
    op.execute(
        """
        CREATE FUNCTION due_and_running(stages text[]) RETURNS bigint
        LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
        AS $$
            SELECT count(*) FROM work
            WHERE stage = ANY (stages) AND dead_at IS NULL AND (run_at <= now() OR token IS NOT NULL)
        $$
        """
    )
    op.execute("REVOKE ALL ON FUNCTION due_and_running(text[]) FROM PUBLIC")
    op.execute(
        """
        DO $$ BEGIN
            IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'loci_scaler') THEN
                GRANT EXECUTE ON FUNCTION due_and_running(text[]) TO loci_scaler;
            END IF;
        END $$
        """
    )


def downgrade() -> None:
    """Take this step back."""
    op.execute("DROP FUNCTION due_and_running(text[])")
    op.execute("DROP POLICY backlog ON work")
    op.drop_table("tick")
