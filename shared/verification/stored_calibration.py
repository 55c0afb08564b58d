"""A calibration as it is stored: what the last finished measurement of a judge has shown."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import RowMapping

from shared.verification.trust import Trust


class CalibrationState(StrEnum):
    """What is known of a judge."""

    MEASURING = "measuring"  # nothing that still holds
    TRUSTED = "trusted"
    NOT_TRUSTED = "not_trusted"


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of a finished measurement, and the model that gave the answers."""

    model: str
    trust: Trust
    calibrated_at: datetime

    @classmethod
    def from_row(cls, row: RowMapping) -> "Measured | None":
        """Read it from a row of `judge_calibration`; None if no measurement was finished."""
        if row["calibrated_at"] is None:
            return None
        return cls(row["calibrated_model"], Trust.from_json(row["figures"]), row["calibrated_at"])


@dataclass(frozen=True, slots=True)
class Measurement:
    """A claimed measurement: the lease token, the answers so far by pair id, and which model gave them."""

    lease_token: str
    answers: dict[str, str | None]
    answering_model: str | None
    failures: int

    @classmethod
    def from_row(cls, row: RowMapping) -> "Measurement":
        """Read it from a row of `judge_calibration` that was claimed."""
        answers: dict[str, Any] = row["answers"]
        return cls(row["lease_token"], answers, row["answering_model"], row["failures"])
