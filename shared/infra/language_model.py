"""Call a chat model through any OpenAI-compatible `/chat/completions` endpoint."""

from dataclasses import dataclass
from typing import Any

import structlog

from shared.foundation import config, errors, validation
from shared.foundation.reply_schema import JsonSchema
from shared.infra.model_endpoint import ModelEndpoint, usage_of
from shared.infra.model_name import ModelName

log = structlog.get_logger()
_CUT_OFF_REASONS = {"length", "max_tokens", "max_output_tokens", "model_length", "content_filter"}
# The longest words of tokenizers are runs of blanks and rules; a reply of such tokens alone says nothing.
_MAX_CHARACTERS_PER_TOKEN = 32
_MAX_NAME = 256


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The text of a reply, and what the endpoint reported for it: usage, and the model that answered.

    The model is the one that was asked for if the endpoint names none.
    """

    text: str
    usage: dict[str, Any]
    model: str


class LanguageModel:
    """One chat model of one endpoint."""

    def __init__(self, endpoint: ModelEndpoint, settings: config.Settings) -> None:
        self._endpoint = endpoint
        self._name = ModelName(endpoint, settings.llm_model)
        self._settings = settings
        self.max_tokens = settings.llm_max_tokens
        self.timeout = settings.llm_timeout
        self.identity = self._name.identity
        self._refuses_schemas = False

    @property
    def host(self) -> str:
        """The host and port of the endpoint, without credentials."""
        return self._endpoint.host

    @property
    def address_digest(self) -> str:
        """A digest of the endpoint's host and path: the same whatever credentials or query are set."""
        return self._endpoint.address_digest

    @property
    def model(self) -> str:
        """The name of the model, as far as it is known without asking the endpoint."""
        return self._name.last_known

    @property
    def max_prompt_tokens(self) -> int:
        """The tokens that a prompt may have."""
        by_model = self._settings.llm_prompt_tokens_by_model
        return by_model.get(self.model, self._settings.llm_prompt_tokens)

    async def name(self) -> str:
        """Return the name of the model: the setting, or else that of the endpoint's only model."""
        return await self._name.find()

    def answered_within(self, seconds: float) -> bool:
        """Tell whether this process got an answer to any request in the last `seconds`."""
        return self._endpoint.answered_within(seconds)

    async def complete(self, system: str, user: str, schema: JsonSchema | None = None) -> ModelReply:
        """Return the model's reply to a system and a user message.

        `schema` is the shape of the reply. It is sent unless this endpoint has refused one since the process
        started. A schema makes valid JSON, not true JSON: the reply is to be checked all the same.

        Workers call `shared.platform.spend.metered_calls` instead, which also records the cost. Raises
        errors.Unavailable if the endpoint cannot serve now (NotAModelReply if something else has answered),
        errors.CutOffReply if the reply ends before it is complete, and errors.InvalidModelReply if the
        response has no text: no choice, an empty one, or a refusal.
        """
        body = {
            "model": await self._name.find(),
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        }
        if schema is None or self._refuses_schemas:
            return await self._post(body)
        try:
            return await self._post(body | {"response_format": _response_format(schema)})
        except errors.InvalidModelReply as error:
            if not error.rejected_by_endpoint or isinstance(error, errors.CutOffReply):
                raise
        # Refused: for the schema, if the same request is answered without it.
        reply = await self._post(body)
        self._refuses_schemas = True
        log.info("reply_schema_refused", model=self.model)
        return reply

    async def _post(self, body: dict[str, Any]) -> ModelReply:
        try:
            response = await self._endpoint.post("chat/completions", body, field="choices")
        except errors.ModelRefused as refusal:
            self._name.note_refusal(refusal)
            raise
        return _parse_reply(response, self.max_tokens, body["model"])

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()


def _response_format(schema: JsonSchema) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}


def _parse_reply(response: dict[str, Any], max_tokens: int, model: str) -> ModelReply:
    usage = usage_of(response)
    try:
        choice = response["choices"][0]
        text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
        finish_reason = choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise errors.InvalidModelReply("a chat completion of an unknown shape", usage=usage) from error
    if _is_cut_off(finish_reason, usage, max_tokens):
        raise errors.CutOffReply("the answer was cut off", usage=usage)
    if refusal:
        raise errors.InvalidModelReply("the model refused", usage=usage)
    if not isinstance(text, str) or validation.is_blank(text):
        raise errors.InvalidModelReply("the model answered nothing", usage=usage)
    if len(text) > max_tokens * _MAX_CHARACTERS_PER_TOKEN:
        # It would be parsed for minutes, while other work of the process waits.
        raise errors.InvalidModelReply("the reply is longer than its tokens can be", usage=usage)
    return ModelReply(text, usage, _reported_model(response, model))


def _reported_model(response: dict[str, Any], default: str) -> str:
    """Return the model that a response names, or `default` if it names none that can be stored."""
    name = response.get("model")
    return name if isinstance(name, str) and name.isprintable() and 0 < len(name) <= _MAX_NAME else default


def _is_cut_off(finish_reason: object, usage: dict[str, Any], max_tokens: int) -> bool:
    """Tell whether a reply ended at a limit, by what the endpoint says or by the tokens that it used.

    `stop`, `eos`, `end_turn` and no reason at all are an end. Whether the JSON of a reply closes is checked
    where it is parsed (`shared.foundation.model_output`).
    """
    if isinstance(finish_reason, str) and finish_reason.casefold() in _CUT_OFF_REASONS:
        return True
    used = usage.get("completion_tokens", usage.get("output_tokens"))
    return isinstance(used, int) and used >= max_tokens


def open_language_model(settings: config.Settings) -> LanguageModel | None:
    """Return the configured model, or None; without one, memories stay as they were written."""
    if settings.llm_base_url is None:
        return None
    endpoint = ModelEndpoint(
        "language model", settings.llm_base_url, settings.llm_api_key, settings.llm_timeout
    )
    return LanguageModel(endpoint, settings)


def open_judge_model(settings: config.Settings, language_model: LanguageModel | None) -> LanguageModel | None:
    """Return the model that is asked for verdicts: one of its own, or the language model itself.

    It has its own if a setting names another endpoint or another model. None if nothing is configured.
    """
    if settings.judge_base_url is None and settings.judge_model is None:
        return language_model
    changes: dict[str, Any] = {"llm_timeout": settings.judge_timeout, "llm_model": settings.judge_model}
    if settings.judge_base_url is not None:
        changes |= {"llm_base_url": settings.judge_base_url, "llm_api_key": settings.judge_api_key}
    return open_language_model(settings.model_copy(update=changes))


def is_configured(settings: config.Settings) -> bool:
    """Tell whether there is a language model."""
    return settings.llm_base_url is not None
