"""Call a model: reserve, call, settle. Workers call models only through this module.

The reserved amount is a strict upper bound. No tokenizer makes more tokens of a text than the text has
bytes in UTF-8, and the format of a chat adds a few tokens to each message; `max_tokens` bounds the
reply. Workers that run in parallel therefore never overrun a budget. In return, a call close to the
limit may be refused although its actual cost would have fitted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from shared.foundation import errors
from shared.foundation.reply_schema import JsonSchema
from shared.foundation.stages import DreamPass
from shared.infra.embedder import Embedder, Vector
from shared.infra.language_model import LanguageModel
from shared.jobs import model_guard
from shared.platform.resources import Resources
from shared.platform.spend import model_call, reserve, usage
from shared.platform.spend.charge import Payer, Purpose
from shared.platform.spend.reserve import CallRequest, Reservation
from shared.platform.spend.usage import Usage

# Tokens that an embedding model adds to a text.
_EMBEDDING_FORMAT_TOKENS = 8
DREAM = "dream"
"""The stage that pauses when the model of a dream pass refuses every request."""
PaidText = tuple[Payer, str]
OnSettled = Callable[[Usage, Decimal | None], None]


@dataclass(frozen=True, slots=True)
class MeteredReply:
    """A model's reply, its usage, its cost in USD (None where the model has no price), and who answered.

    `model` is the name that the endpoint reported, or else that of the model that was asked.
    """

    text: str
    usage: Usage
    cost: Decimal | None
    model: str


async def complete(
    resources: Resources,
    model: LanguageModel,
    payer: Payer,
    system: str,
    user: str,
    schema: JsonSchema | None = None,
    on_settled: OnSettled | None = None,
) -> MeteredReply:
    """Call a chat model within its timeout, and book the cost.

    `schema` is the shape of the reply, for endpoints that take one. `on_settled` gets what was booked,
    also for a call that failed after it was made. A prompt over the model's number of tokens is not sent:
    errors.PromptTooLong tells the caller to ask in smaller parts.
    Raise errors.OverBudget before the call, and errors.Unavailable or errors.InvalidModelReply as the
    model's client does.
    """
    model_call.check_prompt(model, system, user)
    stage = _stage_of(payer)
    async with model_guard.guard(resources.postgres, resources.settings, stage, model.identity):
        return await _complete(resources, model, payer, system, user, schema, on_settled)


def _stage_of(payer: Payer) -> str:
    """Return the stage that pauses if the model refuses: all passes of dreams are one."""
    return DREAM if payer.purpose in set(DreamPass) else payer.purpose


async def _complete(
    resources: Resources,
    model: LanguageModel,
    payer: Payer,
    system: str,
    user: str,
    schema: JsonSchema | None,
    on_settled: OnSettled | None,
) -> MeteredReply:
    bound = model_call.usage_bound(model, system, user)
    [reservation] = await reserve.reserve(
        resources, payer.tenant, [CallRequest(payer, await model.name(), bound)]
    )
    if isinstance(reservation, errors.OverBudget):
        raise reservation

    async def settle_failed(error: errors.Unavailable | errors.InvalidModelReply) -> None:
        await _settle_failed_chat(resources, reservation, error, on_settled)

    reply = await model_call.call(model, system, user, schema, settle_failed)
    reported_usage = usage.parse_or_none(reply.usage)
    [cost] = await _settle_call(resources, [reservation], reported_usage)
    if on_settled is not None:
        on_settled(reported_usage or bound, cost)
    return MeteredReply(reply.text, reported_usage or bound, cost, reply.model)


async def _settle_failed_chat(
    resources: Resources,
    reservation: Reservation,
    error: errors.Unavailable | errors.InvalidModelReply,
    on_settled: OnSettled | None,
) -> None:
    costs = await _settle_failed_call(resources, [reservation], error)
    if costs and on_settled is not None:
        reported = error.usage if isinstance(error, errors.InvalidModelReply) else None
        on_settled(usage.parse_or_none(reported or {}) or reservation.bound, costs[0])


async def embed(
    resources: Resources, embedder: Embedder, texts: Sequence[PaidText]
) -> list[Vector | errors.OverBudget]:
    """Embed at most a batch of texts in one call, each paid for by its own payer.

    A text whose payer has no budget left is not sent; the refusal takes the place of its vector. Raise
    errors.Unavailable if the endpoint fails, and errors.InvalidModelReply if its reply can't be used.
    """
    stage = Purpose.EMBEDDING
    async with model_guard.guard(resources.postgres, resources.settings, stage, embedder.identity):
        return await _embed(resources, embedder, texts)


async def _embed(
    resources: Resources, embedder: Embedder, texts: Sequence[PaidText]
) -> list[Vector | errors.OverBudget]:
    bounds = _bounds_by_payer(embedder, texts)
    outcomes = await _reserve_by_payer(resources, await embedder.name(), bounds)
    reservations = {payer: outcome for payer, outcome in outcomes.items() if isinstance(outcome, Reservation)}
    paid_texts = [text for payer, text in texts if payer in reservations]
    vectors = iter(await _embed_paid(resources, embedder, paid_texts, list(reservations.values())))
    return [next(vectors) if payer in reservations else _refusal(outcomes[payer]) for payer, _ in texts]


def _bounds_by_payer(embedder: Embedder, texts: Sequence[PaidText]) -> dict[Payer, int]:
    """Return the most tokens that each payer's texts can have together."""
    bounds: dict[Payer, int] = {}
    for payer, text in texts:
        text_bound = len(text[: embedder.max_chars].encode()) + _EMBEDDING_FORMAT_TOKENS
        bounds[payer] = bounds.get(payer, 0) + text_bound
    return bounds


async def _reserve_by_payer(
    resources: Resources, model: str, bounds: Mapping[Payer, int]
) -> dict[Payer, Reservation | errors.OverBudget]:
    """Reserve for all payers of a tenant at once, because a batch may serve many users."""
    outcomes: dict[Payer, Reservation | errors.OverBudget] = {}
    for tenant in {payer.tenant for payer in bounds}:
        payers = [payer for payer in bounds if payer.tenant == tenant]
        requests = [CallRequest(payer, model, Usage(bounds[payer])) for payer in payers]
        outcomes |= zip(payers, await reserve.reserve(resources, tenant, requests), strict=True)
    return outcomes


async def _embed_paid(
    resources: Resources, embedder: Embedder, texts: Sequence[str], reservations: Sequence[Reservation]
) -> list[Vector]:
    if not texts:
        return []
    try:
        reply = await embedder.embed_batch(texts)
    except (errors.Unavailable, errors.InvalidModelReply) as error:
        await _settle_failed_call(resources, reservations, error)
        raise
    await _settle_call(resources, reservations, usage.parse_or_none(reply.usage))
    return reply.vectors


def _refusal(outcome: Reservation | errors.OverBudget) -> errors.OverBudget:
    if isinstance(outcome, Reservation):
        raise TypeError("a text that was paid for has a vector")
    return outcome


async def _settle_failed_call(
    resources: Resources,
    reservations: Sequence[Reservation],
    error: errors.Unavailable | errors.InvalidModelReply,
) -> list[Decimal | None]:
    """Book the usage of a failed call as far as it is known, and return the cost of each reservation.

    The reservations of a call that was refused or not made are released; then there are no costs.
    """
    if model_call.was_made(error):
        reported = error.usage if isinstance(error, errors.InvalidModelReply) else None
        return await _settle_call(resources, reservations, usage.parse_or_none(reported or {}))
    for tenant, tenant_reservations in _by_tenant(reservations).items():
        await reserve.release(resources, tenant, tenant_reservations)
    return []


async def _settle_call(
    resources: Resources, reservations: Sequence[Reservation], reported_usage: Usage | None
) -> list[Decimal | None]:
    """Settle one call for all payers who share it, and return the cost of each reservation."""
    shares = split_usage(reported_usage, [reservation.bound.input for reservation in reservations])
    usage_of = dict(zip(reservations, shares, strict=True))
    costs: dict[Reservation, Decimal | None] = {}
    for tenant, tenant_reservations in _by_tenant(reservations).items():
        usages = [(reservation, usage_of[reservation]) for reservation in tenant_reservations]
        costs |= zip(tenant_reservations, await reserve.settle(resources, tenant, usages), strict=True)
    return [costs[reservation] for reservation in reservations]


def _by_tenant(reservations: Sequence[Reservation]) -> dict[str, list[Reservation]]:
    groups: dict[str, list[Reservation]] = {}
    for reservation in reservations:
        groups.setdefault(reservation.payer.tenant, []).append(reservation)
    return groups


def split_usage(total_usage: Usage | None, weights: Sequence[int]) -> list[Usage | None]:
    """Split the usage of one call in proportion to weights; the shares add up to it exactly."""
    if total_usage is None or len(weights) == 1:
        return [total_usage] * len(weights)
    counts = (total_usage.input, total_usage.output, total_usage.cached)
    shares = [_split_number(number, weights) for number in counts]
    return [Usage(*share) for share in zip(*shares, strict=True)]


def _split_number(number: int, weights: Sequence[int]) -> list[int]:
    """Split a number at the running sums of the weights, so that rounding loses nothing."""
    total_weight, weight_sum, share_sum = sum(weights), 0, 0
    shares: list[int] = []
    for weight in weights:
        weight_sum += weight
        shares.append(number * weight_sum // total_weight - share_sum)
        share_sum += shares[-1]
    return shares
