"""Industry patterns, and a tenant's consent to share its own and to see them."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping


class Pattern(BaseModel):
    """A flow, the tools that it called in their order, how it ended, and how many tenants it is known from.

    No text, no parameter and no name is in it. It counts tenants and not runs, which would tell how much work
    one of them has.
    """

    model_config = ConfigDict(frozen=True)

    flow_dact: str
    tool_ids: list[str]
    outcome: str
    count: int
    # Where it stands in the list of patterns.
    position: str = Field(exclude=True)

    @classmethod
    def from_row(cls, row: RowMapping) -> "Pattern":
        """Build a pattern from a row of `shared_patterns`."""
        return cls.model_validate({**row})


class Consent(BaseModel):
    """Whether a tenant shares patterns and sees them, and since when."""

    model_config = ConfigDict(frozen=True)

    consent: bool
    since: datetime | None
