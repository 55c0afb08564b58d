"""Store how far judges are trusted, and what measuring them has used."""

from alembic import op
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Integer,
    PrimaryKeyConstraint,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from migrations import row_level_security

revision = "a028"
down_revision = "a027"
branch_labels = None
depends_on = None

_TABLES = ("judge_calibration", "judge_calibration_spend")


def upgrade() -> None:
    """Apply this migration."""
    op.create_table(
        "judge_calibration",
        Column("endpoint", Text, nullable=False),
        Column("model", Text, nullable=False),
        Column("directive_version", Text, nullable=False),
        Column("host", Text, nullable=False),
        Column("state", Text, nullable=False, server_default=text("'measuring'")),
        Column("answering_model", Text),
        Column("answers", JSONB, nullable=False, server_default=text("'{}'")),
        Column("calibrated_model", Text),
        Column("figures", JSONB),
        Column("calibrated_at", DateTime(timezone=True)),
        Column("not_before", DateTime(timezone=True), nullable=False, server_default=func.now()),
        Column("failures", Integer, nullable=False, server_default=text("0")),
        Column("lease_token", Uuid(as_uuid=False)),
        Column("leased_until", DateTime(timezone=True)),
        PrimaryKeyConstraint("endpoint", "model", "directive_version"),
        CheckConstraint(
            "state = 'measuring' OR (state IN ('trusted', 'not_trusted') AND calibrated_model IS NOT NULL"
            " AND figures IS NOT NULL AND calibrated_at IS NOT NULL)",
            name="judge_calibration_measured",
        ),
    )
    op.create_table(
        "judge_calibration_spend",
        Column("week", Date, primary_key=True),
        Column("tokens", BigInteger, nullable=False),
    )
    for table in _TABLES:
        row_level_security.grant(table)


def downgrade() -> None:
    """Revert this migration."""
    for table in reversed(_TABLES):
        op.drop_table(table)
