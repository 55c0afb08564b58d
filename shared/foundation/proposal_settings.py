"""The settings of proposals: what is held until a judge or a caller decides."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class ProposalSettings(BaseSettings):
    """The part of the settings that is about proposals."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(use_attribute_docstrings=True)

    proposal_days: float = Field(30, gt=0)
    """How long a proposal waits for a judge or a caller before it expires."""
    proposal_max_per_scope: int = Field(1000, ge=1)
    """The most proposals that wait in a scope. Then no more are held, and mining of the scope pauses."""
    retention_proposal_days: float = Field(30, gt=0)
    """How long a decided or expired proposal is kept."""
