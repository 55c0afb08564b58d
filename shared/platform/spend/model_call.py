"""Make one call of a chat model, whoever pays: its upper bound, time limit, and what its failure means."""

import asyncio
from collections.abc import Awaitable, Callable

from shared.foundation import errors, prompt_size
from shared.foundation.reply_schema import JsonSchema
from shared.foundation.stages import ReasonCode
from shared.infra.language_model import LanguageModel, ModelReply
from shared.platform.spend.usage import Usage

# Tokens of the roles and separators of two messages, and of the beginning of the reply.
_CHAT_FORMAT_TOKENS = 64
_RECENT_SECONDS = 600
SettleFailed = Callable[[errors.Unavailable | errors.InvalidModelReply], Awaitable[None]]
"""Book what a failed call has used."""


def check_prompt(model: LanguageModel, system: str, user: str) -> None:
    """Raise errors.PromptTooLong for a prompt over the model's number of tokens."""
    prompt_tokens = prompt_size.tokens_of(system) + prompt_size.tokens_of(user)
    if prompt_tokens > model.max_prompt_tokens:
        message = f"a prompt of about {prompt_tokens} tokens, where {model.max_prompt_tokens} are allowed"
        raise errors.PromptTooLong(message, rejected_by_endpoint=True)


def usage_bound(model: LanguageModel, system: str, user: str) -> Usage:
    """Return the most tokens that a call can use: no text has more of them than bytes."""
    return Usage(len(system.encode()) + len(user.encode()) + _CHAT_FORMAT_TOKENS, model.max_tokens)


async def call(
    model: LanguageModel, system: str, user: str, schema: JsonSchema | None, settle_failed: SettleFailed
) -> ModelReply:
    """Return the model's reply.

    Raises what `LanguageModel.complete` raises, and errors.Unavailable after the model's timeout, once
    `settle_failed` has booked the failure.
    """
    try:
        return await _complete_in_time(model, system, user, schema)
    except (errors.Unavailable, errors.InvalidModelReply) as error:
        await settle_failed(error)
        if (meaning := _meaning_of(model, error)) is not error:
            raise meaning from error
        raise


def was_made(error: errors.Unavailable | errors.InvalidModelReply) -> bool:
    """Tell whether a call that failed may have used tokens: it was neither refused nor never sent."""
    if isinstance(error, errors.InvalidModelReply):
        return not error.rejected_by_endpoint
    return error.may_have_run


async def _complete_in_time(
    model: LanguageModel, system: str, user: str, schema: JsonSchema | None
) -> ModelReply:
    try:
        async with asyncio.timeout(model.timeout):
            return await model.complete(system, user, schema)
    except TimeoutError:
        unavailable = errors.Unavailable("language model", "no answer in time", may_have_run=True)
        # Others were answered while this request waited, so the request itself may be to blame.
        unavailable.uses_attempt = model.answered_within(model.timeout)
        raise unavailable from None


def _meaning_of(model: LanguageModel, error: errors.LociError) -> errors.LociError:
    """Return what a failure means, if the endpoint has refused the request or no model has answered it.

    If nothing else was answered lately, nobody can tell that this request is to blame, so all of them wait.
    """
    is_refused = isinstance(error, errors.InvalidModelReply) and error.rejected_by_endpoint
    if isinstance(error, errors.CutOffReply) or not (is_refused or isinstance(error, errors.NotAModelReply)):
        return error
    if not model.answered_within(_RECENT_SECONDS):
        return errors.ModelRefused("language model", str(error), ReasonCode.REQUEST_REFUSED)
    if isinstance(error, errors.NotAModelReply):
        error.uses_attempt = True
    return error
