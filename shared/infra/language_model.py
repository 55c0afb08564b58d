"""Call a chat model through any OpenAI-compatible `/chat/completions` endpoint."""

from dataclasses import dataclass
from typing import Any

from shared.foundation import config, errors
from shared.infra.model_endpoint import ModelEndpoint, usage_of


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The text of a reply and the usage object that the endpoint reported for it."""

    text: str
    finish_reason: str | None
    usage: dict[str, Any]


class LanguageModel:
    """One chat model of one endpoint."""

    def __init__(self, endpoint: ModelEndpoint, settings: config.Settings) -> None:
        self._endpoint = endpoint
        self.model = settings.llm_model or "default"
        self.max_tokens = settings.llm_max_tokens

    async def complete(self, system: str, user: str) -> ModelReply:
        """Return the model's reply to a system and a user message.

        Workers call `shared.platform.spend.metered_calls` instead, which also records the cost. Raises
        errors.Unavailable if the endpoint cannot serve now, and errors.InvalidModelReply if the response
        has no text: an empty choice, a refusal or an unknown shape.
        """
        body = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        }
        return _parse_reply(await self._endpoint.post("chat/completions", body))

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()


def _parse_reply(response: Any) -> ModelReply:
    usage = usage_of(response)
    try:
        choice = response["choices"][0]
        text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
        finish_reason = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise errors.InvalidModelReply("a chat completion of an unknown shape", usage=usage) from error
    if refusal:
        raise errors.InvalidModelReply("the model refused", usage=usage)
    if not isinstance(text, str) or not text.strip():
        raise errors.InvalidModelReply("the model answered nothing", usage=usage)
    return ModelReply(text, finish_reason, usage)


def open_language_model(settings: config.Settings) -> LanguageModel | None:
    """Return the configured model, or None; without one, memories stay as they were written."""
    if settings.llm_base_url is None:
        return None
    endpoint = ModelEndpoint(
        "language model", settings.llm_base_url, settings.llm_api_key, settings.llm_timeout
    )
    return LanguageModel(endpoint, settings)
