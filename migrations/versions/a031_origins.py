"""Say of every record where it comes from, and how far that is trusted.

What is stored already, and what a process of the version before inserts meanwhile, was said by nobody
known: some of it a tool or a page said, and nothing tells which. So it gets the least trust. It is shown and
found as before, and keeps the labels that it has. A turn has the trust of its role, which is known, so its
column stays empty. All defaults are constants, so no table is rewritten.
"""

from typing import Any

from alembic import op
from sqlalchemy import Column, Text, text

revision = "a031"
down_revision = "a030"
branch_labels = None
depends_on = None

_TABLES = (
    "memory",
    "observation",
    "pinned_text",
    "preference",
    "skill",
    "playbook",
    "document",
    "business_context_part",
    "graph_triple",
    "scratchpad_snippet",
)


def upgrade() -> None:
    """Apply this migration."""
    for table in _TABLES:
        channel = "document" if table == "document" else "api"
        _add(table, channel, nullable=False, server_default=text("'outside'"))
    _add("turn", "turn", nullable=True)


def _add(table: str, channel: str, **trust: Any) -> None:
    op.add_column(table, Column("origin_channel", Text, nullable=False, server_default=text(f"'{channel}'")))
    op.add_column(table, Column("origin_trust", Text, **trust))
    op.add_column(table, Column("origin_key", Text))


def downgrade() -> None:
    """Revert this migration."""
    for table in ("turn", *_TABLES):
        for column in ("origin_key", "origin_trust", "origin_channel"):
            op.drop_column(table, column)
