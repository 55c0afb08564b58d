"""The settings of the judge, the model that says whether evidence supports a statement."""

from typing import ClassVar

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class JudgeSettings(BaseSettings):
    """The endpoint of the judge, and how often it is measured how far it can be trusted."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(use_attribute_docstrings=True)

    judge_base_url: str | None = None
    """An OpenAI-compatible endpoint of the judge. Unset means that of the language model."""
    judge_model: str | None = None
    """The name of the judge's model. Unset means the language model, or the only one of its own endpoint."""
    judge_api_key: SecretStr | None = None
    """The API key of the judge's own endpoint."""
    judge_timeout: float = Field(60, gt=0)
    """The time limit of a call to a judge with a model of its own, which is asked about up to 20 statements
    at once. The language model has its own time limit."""
    judge_calibration_days: float = Field(7, gt=0)
    """Days after which a worker measures again how far the judge can be trusted. It is not trusted any more
    when its last measurement is twice as old."""
    judge_calibration_tokens: int = Field(1_000_000, ge=0)
    """Tokens that measuring judges may use in a week, from Monday 00:00 UTC on. The installation pays for
    them, and no tenant's budget. Without room the judge is measured later; with 0 it is never trusted."""
