"""The settings of what a gateway process takes upon itself."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class GatewaySettings(BaseSettings):
    """The part of the settings that bounds a gateway process."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(use_attribute_docstrings=True)

    gateway_body_mb: int = Field(128, ge=64)
    """The MiB of bodies that a gateway process holds at the same time. What is over is answered with a 503
    and `Retry-After`: otherwise many large requests at once would fill its memory. Imports and uploaded
    documents are written to disk as they arrive and don't count."""
