"""Measure the judge: ask it the labelled pairs that come with the product, and store what that shows.

One worker in the fleet does it, under a lease. Each batch of answers is stored, so that another goes on where
it stopped. Nobody waits for it: until it is finished, a judge without a calibration is not trusted.
What goes wrong is tried again later, and so is what the week's budget has no room for.
"""

import asyncio
import time
from collections.abc import Sequence

import structlog

from shared.foundation import errors
from shared.foundation.reply_schema import JsonSchema
from shared.foundation.stages import CALIBRATE_TASK
from shared.infra.language_model import LanguageModel
from shared.platform.resources import Resources
from shared.verification import calibration, calibration_call, judge, queries, trust
from shared.verification.calibration import LabelledClaim
from shared.verification.calibration_call import LeaseLostError
from shared.verification.claim import Judgement, Verdict
from shared.verification.judge_identity import identity_of
from shared.verification.stored_calibration import Measurement
from shared.verification.trusted_judge import interval_seconds
from workers.runtime import drain

log = structlog.get_logger()
_MAX_BUDGET_DELAY = 3600.0
"""Seconds until it is tried again whether the budget has room: somebody may have raised it."""


class _OtherModelError(Exception):
    """The endpoint serves another model than the one that gave the answers so far."""


async def calibrate_if_due(resources: Resources) -> int:
    """Measure the judge if that is due and nobody else does it. Return how many claims were answered."""
    model, settings = resources.judge_model, resources.settings
    if model is None or settings.judge_calibration_tokens == 0:
        return 0
    async with resources.postgres.across_tenants() as tx:
        measurement = await queries.claim(
            tx, identity_of(model), interval_seconds(settings), settings.job_lease
        )
    if measurement is None:
        return 0
    interview = _Interview(resources, model, measurement)
    before = len(interview.answers)
    await _run(resources, interview)
    return len(interview.answers) - before


async def _run(resources: Resources, interview: "_Interview") -> None:
    """Ask as long as this worker may, then end the lease: at once, or with a delay after a failure."""
    try:
        if not await interview.ask_open_pairs():
            await interview.release()
            resources.publisher.send(CALIBRATE_TASK)
    except asyncio.CancelledError:
        await interview.release()
        raise
    except LeaseLostError:
        log.info("judge_calibration_lost")
    except errors.OverBudget as error:
        await interview.postpone(str(error), min(error.retry_after, _MAX_BUDGET_DELAY))
    except errors.Unavailable as error:
        await interview.postpone(str(error), interview.retry_delay(error.retry_after))
    except _OtherModelError:
        await interview.postpone("its endpoint serves another model now", interview.retry_delay())


class _Interview:
    """A measurement that this worker has claimed."""

    def __init__(self, resources: Resources, model: LanguageModel, measurement: Measurement) -> None:
        self._resources = resources
        self._model = model
        self._lease_token = measurement.lease_token
        self._failures = measurement.failures
        self._answering_model = measurement.answering_model
        self._reply_model: str | None = None
        self.answers = dict(measurement.answers)

    async def ask_open_pairs(self) -> bool:
        """Ask what has no answer yet, and store the outcome. Return False if this worker's time is over."""
        deadline = time.monotonic() + self._resources.settings.job_lease / 2
        batch_size = judge.MAX_CLAIMS
        while pairs := [pair for pair in calibration.read_mixed() if pair.id not in self.answers]:
            if drain.stopping.is_set() or time.monotonic() > deadline:
                return False
            batch = pairs[:batch_size]
            judgements = await self._ask(batch)
            if judgements is None and len(batch) > 1:
                batch_size = len(batch) // 2
                continue
            await self._record(batch, judgements or [None])
        await self._finish()
        return True

    async def _ask(self, batch: Sequence[LabelledClaim]) -> list[Judgement | None] | None:
        """Return the judgements of a batch, or None if the reply was cut off."""
        self._reply_model = None
        try:
            return await judge.ask_once(self._complete, [pair.claim for pair in batch])
        except errors.CutOffReply:
            return None

    async def _complete(self, system: str, user: str, schema: JsonSchema) -> str:
        reply = await calibration_call.complete(
            self._resources, self._model, self._lease_token, system, user, schema
        )
        self._reply_model = reply.model
        return reply.text

    async def _record(self, batch: Sequence[LabelledClaim], judgements: Sequence[Judgement | None]) -> None:
        answers = {
            pair.id: None if judgement is None else str(judgement.verdict)
            for pair, judgement in zip(batch, judgements, strict=True)
        }
        model = self._reply_model or self._answering_model
        is_other = self._answering_model is not None and model != self._answering_model
        async with self._resources.postgres.across_tenants() as tx:
            if not await queries.record(tx, self._lease_token, answers, model, anew=is_other):
                raise LeaseLostError
        if is_other:
            raise _OtherModelError
        self._answering_model = model
        self.answers |= answers

    async def _finish(self) -> None:
        pairs = calibration.read_mixed()
        measured = trust.measure(pairs, [_judgement(self.answers[pair.id]) for pair in pairs])
        model = self._answering_model or await self._model.name()
        async with self._resources.postgres.across_tenants() as tx:
            if not await queries.finish(tx, self._lease_token, model, measured):
                raise LeaseLostError
        log.info("judge_measured", model=model, trusted=measured.is_trusted, against=measured.reasons_against)

    def retry_delay(self, retry_after: float | None = None) -> float:
        """Return the seconds until the next attempt after a failure."""
        return drain.retry_delay(self._resources, self._failures + 1, retry_after)

    async def release(self) -> None:
        """Let another worker go on at once."""
        async with self._resources.postgres.across_tenants() as tx:
            await queries.release(tx, self._lease_token)

    async def postpone(self, reason: str, delay: float) -> None:
        """Let nobody go on within `delay` seconds."""
        log.warning("judge_calibration_postponed", reason=reason, seconds=round(delay))
        async with self._resources.postgres.across_tenants() as tx:
            await queries.postpone(tx, self._lease_token, delay)


def _judgement(answer: str | None) -> Judgement | None:
    return None if answer is None else Judgement(Verdict(answer), "")
