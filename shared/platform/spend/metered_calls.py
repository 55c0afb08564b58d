"""The one way by which workers ask a model: reserve, call, settle.

What is reserved is a strict bound. No tokenizer makes more tokens of a text than it has bytes of
UTF-8, and a chat's wrapping adds a few to each message; `max_tokens` bounds the answer. So workers in
parallel never overrun a budget, at the price that near its end a call may be refused that would
just have fitted.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from shared.foundation import errors
from shared.infra.embedder import Embedder, Vector
from shared.infra.language_model import LanguageModel
from shared.platform.resources import Resources
from shared.platform.spend import reserve, usage
from shared.platform.spend.charge import Payer
from shared.platform.spend.reserve import CallRequest, Reservation
from shared.platform.spend.usage import Usage

# Two messages with their roles and separators, and what opens the answer.
_WRAPPING = 64
# What an embedding model puts around a text.
_FRAME = 8
PaidText = tuple[Payer, str]


@dataclass(frozen=True, slots=True)
class MeteredReply:
    """What a model said, what that used, and what it cost: None where the model has no price."""

    text: str
    usage: Usage
    cost: Decimal | None


async def complete(
    resources: Resources, model: LanguageModel, payer: Payer, system: str, user: str
) -> MeteredReply:
    """Ask the chat model within the deadline of the settings, and book what it cost.

    Raises errors.OverBudget before the call, errors.Unavailable and errors.BadReply as the model does.
    """
    bound = Usage(_bytes(system) + _bytes(user) + _WRAPPING, model.max_tokens)
    [held] = await reserve.reserve(resources, payer.tenant, [CallRequest(payer, model.model, bound)])
    if isinstance(held, errors.OverBudget):
        raise held
    try:
        async with asyncio.timeout(resources.settings.llm_timeout):
            reply = await model.complete(system, user)
    except TimeoutError:
        await _close(resources, [held], None)
        raise errors.Unavailable("language model", "no answer in time") from None
    except (errors.Unavailable, errors.InvalidModelReply) as error:
        await _failed(resources, [held], error)
        raise
    used = _read(reply.usage)
    [cost] = await _close(resources, [held], used)
    return MeteredReply(reply.text, used or bound, cost)


def _bytes(text: str) -> int:
    return len(text.encode())


async def embed(
    resources: Resources, embedder: Embedder, asked: Sequence[PaidText]
) -> list[Vector | errors.OverBudget]:
    """Embed at most a batch of texts in one call, each paid for by its own payer.

    What a payer's budget forbids is left out of the call and answered by the refusal. Raises
    errors.Unavailable, also for an answer that can't be used.
    """
    payers = _bounds(embedder, asked)
    judged = await _reserved(resources, embedder.model, payers)
    held = {payer: one for payer, one in judged.items() if isinstance(one, Reservation)}
    paid = [(payer, text) for payer, text in asked if payer in held]
    vectors = iter(await _vectors(resources, embedder, paid, held))
    return [next(vectors) if payer in held else _refusal(judged[payer]) for payer, _ in asked]


def _bounds(embedder: Embedder, asked: Sequence[PaidText]) -> dict[Payer, int]:
    bounds: dict[Payer, int] = {}
    for payer, text in asked:
        bounds[payer] = bounds.get(payer, 0) + _bytes(text[: embedder.max_chars]) + _FRAME
    return bounds


async def _reserved(
    resources: Resources, model: str, payers: Mapping[Payer, int]
) -> dict[Payer, Reservation | errors.OverBudget]:
    """Reserve for all payers of a tenant at once: a batch may serve many users."""
    judged: dict[Payer, Reservation | errors.OverBudget] = {}
    for tenant in {payer.tenant for payer in payers}:
        mine = [payer for payer in payers if payer.tenant == tenant]
        wishes = [CallRequest(payer, model, Usage(payers[payer])) for payer in mine]
        judged |= zip(mine, await reserve.reserve(resources, tenant, wishes), strict=True)
    return judged


async def _vectors(
    resources: Resources, embedder: Embedder, paid: Sequence[PaidText], held: Mapping[Payer, Reservation]
) -> list[Vector]:
    if not paid:
        return []
    try:
        embedded = await embedder.embed_batch([text for _, text in paid])
    except (errors.Unavailable, errors.InvalidModelReply) as error:
        await _failed(resources, list(held.values()), error)
        if isinstance(error, errors.Unavailable):
            raise
        raise errors.Unavailable("embedding endpoint", str(error)) from error
    await _close(resources, list(held.values()), _read(embedded.usage))
    return embedded.vectors


def _refusal(judged: Reservation | errors.OverBudget) -> errors.OverBudget:
    if isinstance(judged, Reservation):
        raise TypeError("what was paid for has a vector")
    return judged


async def _failed(
    resources: Resources, held: Sequence[Reservation], error: errors.Unavailable | errors.InvalidModelReply
) -> None:
    """Book what a failed call used, as far as anybody said; nothing where it was refused or not made."""
    if isinstance(error, errors.InvalidModelReply) and not error.rejected_by_endpoint:
        await _close(resources, held, _read(error.usage or {}))
    elif isinstance(error, errors.Unavailable) and error.may_have_run:
        await _close(resources, held, None)
    else:
        for tenant, mine in _by_tenant(held).items():
            await reserve.release(resources, tenant, mine)


async def _close(
    resources: Resources, held: Sequence[Reservation], used: Usage | None
) -> list[Decimal | None]:
    """Settle one call for all who share it; return what each has paid."""
    shares = dict(zip(held, split_usage(used, [one.bound.input for one in held]), strict=True))
    costs: dict[Reservation, Decimal | None] = {}
    for tenant, mine in _by_tenant(held).items():
        told = [(one, shares[one]) for one in mine]
        costs |= zip(mine, await reserve.settle(resources, tenant, told), strict=True)
    return [costs[one] for one in held]


def _by_tenant(held: Sequence[Reservation]) -> dict[str, list[Reservation]]:
    groups: dict[str, list[Reservation]] = {}
    for one in held:
        groups.setdefault(one.payer.tenant, []).append(one)
    return groups


def split_usage(used: Usage | None, weights: Sequence[int]) -> list[Usage | None]:
    """Share out what one call used in proportion to weights, to the last token."""
    if used is None or len(weights) == 1:
        return [used] * len(weights)
    parts = [_shares(number, weights) for number in (used.input, used.output, used.cached)]
    return [Usage(*share) for share in zip(*parts, strict=True)]


def _shares(number: int, weights: Sequence[int]) -> list[int]:
    """Cut a number at the running sums of the weights: the parts add up to it."""
    whole, seen, given = sum(weights), 0, 0
    parts: list[int] = []
    for weight in weights:
        seen += weight
        parts.append(number * seen // whole - given)
        given += parts[-1]
    return parts


def _read(told: Mapping[str, Any]) -> Usage | None:
    """Return what an endpoint says it used; None where it says nothing or what can't be."""
    try:
        return usage.parse_usage(told)
    except errors.Invalid:
        return None
