"""Make a call to a model, unless its stage is paused, and begin or end the pause by how the call ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from shared.foundation import config, errors
from shared.foundation.stages import REFUSALS_OF_MODEL, ReasonCode
from shared.infra.model_endpoint import ModelIdentity
from shared.infra.postgres import Postgres
from shared.infra.transaction import FleetTransaction
from shared.jobs import model_pauses

log = structlog.get_logger()


@asynccontextmanager
async def guard(
    postgres: Postgres, settings: config.Settings, stage: str, identity: ModelIdentity
) -> AsyncIterator[None]:
    """Guard one call to a model.

    Raises errors.ModelRefused without a call if the stage is paused and somebody else probes the model. A
    call that raises it begins a pause. Any answer of the endpoint ends it, and those of the model in other
    stages, unless they may be about what only these ask.
    """
    ends_pause = await _admit(postgres, settings, stage, identity)
    try:
        yield
    except errors.ModelRefused as refusal:
        refusal.begins_pause = not ends_pause
        await _begin(postgres, settings, stage, identity, refusal.reason_code)
        refusal.retry_after = settings.model_probe_interval
        raise
    except errors.InvalidModelReply as error:
        if ends_pause and (not error.rejected_by_endpoint or isinstance(error, errors.PromptTooLong)):
            await _end(postgres, stage, identity)
        raise
    if ends_pause:
        await _end(postgres, stage, identity)


async def _admit(postgres: Postgres, settings: config.Settings, stage: str, identity: ModelIdentity) -> bool:
    """Return whether an answer ends a pause: of this stage, which the call probes, or of another one.

    Raises errors.ModelRefused if the stage is paused and the call may not be its probe.
    """
    async with postgres.across_tenants() as tx:
        pause = await model_pauses.find(tx, stage, identity)
        if pause is None:
            return await model_pauses.is_any_disproved(tx, stage, identity)
        if await model_pauses.claim_probe(tx, stage, identity, settings.model_probe_interval):
            return True
    raise errors.ModelRefused("the model", f"{stage} is paused", pause.reason_code, pause.seconds_to_probe)


async def _begin(
    postgres: Postgres,
    settings: config.Settings,
    stage: str,
    identity: ModelIdentity,
    reason_code: ReasonCode,
) -> None:
    log.error("stage_paused", stage=stage, model=identity.model, reason_code=reason_code)
    async with postgres.across_tenants() as tx:
        await model_pauses.begin(tx, stage, identity, reason_code, settings.model_probe_interval)


async def _end(postgres: Postgres, stage: str, identity: ModelIdentity) -> None:
    log.info("stage_resumed", stage=stage, model=identity.model)
    async with postgres.across_tenants() as tx:
        await model_pauses.end(tx, stage, identity)


async def note_refusal(
    postgres: Postgres, stage: str, identity: ModelIdentity, refusal: errors.ModelRefused, interval: float
) -> None:
    """Pause a stage because its model refused a call outside of it, such as the embedding of a query.

    Only for what the model answers to every request: else a single query could stop the jobs of everybody.
    A pause that there is already stays as it is, or its probe would never be due.
    """
    if refusal.reason_code not in REFUSALS_OF_MODEL:
        return
    async with postgres.across_tenants() as tx:
        if await model_pauses.find(tx, stage, identity) is None:
            await model_pauses.begin(tx, stage, identity, refusal.reason_code, interval)


async def claim_limit(tx: FleetTransaction, stage: str, identity: ModelIdentity | None, limit: int) -> int:
    """Return how many jobs of a stage may be claimed: `limit`, one to probe a paused model, or 0."""
    if identity is None:
        return limit
    pause = await model_pauses.find(tx, stage, identity)
    if pause is None:
        return limit
    return min(limit, 1) if pause.seconds_to_probe <= 0 else 0
