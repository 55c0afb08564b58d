"""The tables of how far judges are trusted. They have no tenant: a judge is the same for all of them.

`answers` are the verdicts of a measurement that is not finished, by the id of the labelled pair, so that it
goes on where it stopped. The figures are those of the last finished one.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from shared.foundation.content import no_content
from shared.infra.postgres import metadata

judge_calibration = Table(
    "judge_calibration",
    metadata,
    Column("endpoint", Text, nullable=False, info=no_content("a digest of host and path")),
    Column("model", Text, nullable=False, info=no_content("the name of a model")),
    Column("directive_version", Text, nullable=False, info=no_content("a digest")),
    Column("host", Text, nullable=False, info=no_content("the host of an endpoint")),
    Column(
        "state", Text, nullable=False, server_default=text("'measuring'"), info=no_content("one of three")
    ),
    # The model that gave the answers, as the endpoint reported it.
    Column("answering_model", Text, info=no_content("the name of a model")),
    Column(
        "answers",
        JSONB,
        nullable=False,
        server_default=text("'{}'"),
        info=no_content("verdicts on pairs that come with the product"),
    ),
    Column("calibrated_model", Text, info=no_content("the name of a model")),
    Column("figures", JSONB, info=no_content("numbers, by type and language")),
    Column("calibrated_at", DateTime(timezone=True)),
    # No call is made before: the endpoint failed, or the budget was used up.
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
"""One row for each judge: an endpoint, the model that it is asked for, and a version of the directive."""

judge_calibration_spend = Table(
    "judge_calibration_spend",
    metadata,
    Column("week", Date, primary_key=True),  # its Monday, in UTC
    Column("tokens", BigInteger, nullable=False),
)
"""The tokens that measuring judges has used, which the installation pays for and no tenant."""
