"""The model that is asked for verdicts: that of the judge's own endpoint, or the language model."""

from typing import Any

from shared.foundation import config
from shared.infra.language_model import LanguageModel, open_language_model


def open_judge_model(settings: config.Settings) -> LanguageModel | None:
    """Return the judge's model, or None if no endpoint is configured."""
    changes: dict[str, Any] = {"llm_timeout": settings.judge_timeout}
    if settings.judge_model is not None or settings.judge_base_url is not None:
        changes["llm_model"] = settings.judge_model
    if settings.judge_base_url is not None:
        changes |= {"llm_base_url": settings.judge_base_url, "llm_api_key": settings.judge_api_key}
    return open_language_model(settings.model_copy(update=changes))
