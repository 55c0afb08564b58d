"""The response of `GET /v1/models`."""

from datetime import datetime
from typing import Literal

from services.gateway.api_model import ApiModel


class ShareOfAnswers(ApiModel):
    """How many of some answers were right."""

    right: int
    count: int


class JudgeFigures(ApiModel):
    """What was measured of a judge: of what it calls supported, of what is, and of each type and language."""

    precision: ShareOfAnswers
    recall: ShareOfAnswers
    by_type: dict[str, ShareOfAnswers]
    by_language: dict[str, ShareOfAnswers]


class ModelState(ApiModel):
    """A model by its purpose. `trusted` and what follows are about a judge, and null for any other."""

    purpose: Literal["language", "judge", "embedding"]
    endpoint: str | None
    model: str | None
    state: Literal["not_configured", "configured", "paused", "measuring", "trusted", "not_trusted"]
    trusted: bool | None
    calibrated_at: datetime | None
    figures: JudgeFigures | None


class ModelsResponse(ApiModel):
    """The models that the installation asks."""

    models: list[ModelState]
