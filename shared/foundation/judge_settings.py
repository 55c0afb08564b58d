"""The settings of the judge, the model that says whether evidence supports a statement."""

from typing import ClassVar

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class JudgeSettings(BaseSettings):
    """The endpoint of the judge. `loci models check` measures how far it can be trusted."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(use_attribute_docstrings=True)

    judge_base_url: str | None = None
    """An OpenAI-compatible endpoint of the judge. Unset means that of the language model."""
    judge_model: str | None = None
    """The name of the judge's model. Unset means the language model, or the only one of its own endpoint."""
    judge_api_key: SecretStr | None = None
    """The API key of the judge's own endpoint."""
    judge_timeout: float = Field(60, gt=0)
    """The time limit of a call to the judge, which is asked about up to 20 statements at once."""
