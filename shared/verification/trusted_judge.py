"""The one way to a judge's verdicts: a judge that is trusted, or none.

Nothing waits for a judge. Without one that is trusted, whoever wants a verdict goes on without.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shared.foundation import config
from shared.foundation.reply_schema import JsonSchema
from shared.foundation.stages import CALIBRATE_TASK
from shared.infra.language_model import LanguageModel
from shared.jobs import counters as fleet_counters
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls
from shared.platform.spend.charge import Payer, Purpose
from shared.verification import judge, queries
from shared.verification.claim import Claim, Judgement
from shared.verification.judge_identity import JudgeIdentity, identity_of
from shared.verification.stored_calibration import Measured

_DAY_SECONDS = 86_400
_MAX_INTERVALS = 2
"""Measurements that may be missed: the endpoint was away when one was due, or the budget used up."""


async def find_trusted_judge(resources: Resources) -> "TrustedJudge | None":
    """Return the configured judge if its verdicts count now.

    None if no endpoint is configured, or this model with this directive is not measured, not trusted, or was
    measured too long ago. It is one small read: once for a batch of work is often enough.
    """
    model = resources.judge_model
    if model is None:
        return None
    identity = identity_of(model)
    async with resources.postgres.across_tenants() as tx:
        measured = await queries.find_trusted(tx, identity, max_age_seconds(resources.settings))
    return None if measured is None else TrustedJudge(resources, model, identity, measured)


def interval_seconds(settings: config.Settings) -> float:
    """Return the seconds after which a judge is measured again."""
    return settings.judge_calibration_days * _DAY_SECONDS


def max_age_seconds(settings: config.Settings) -> float:
    """Return the seconds after which a judge is not trusted any more by what was measured."""
    return _MAX_INTERVALS * interval_seconds(settings)


class _OtherModelError(Exception):
    """The endpoint reports another model than the one that was measured."""


@dataclass(frozen=True, slots=True)
class TrustedJudge:
    """A judge whose verdicts count, by one calibration."""

    _resources: Resources
    _language_model: LanguageModel
    _identity: JudgeIdentity
    _measured: Measured

    @property
    def model(self) -> str:
        """The name of the model, as its endpoint reported it when it was measured."""
        return self._measured.model

    @property
    def name(self) -> str:
        """The model with the version of the directive: who was asked, however often it was measured."""
        return f"{self.model} {self._identity.directive_version}"

    @property
    def key(self) -> str:
        """What stands for this judge with this directive and this calibration: 16 hex digits."""
        identity, calibrated_at = self._identity, self._measured.calibrated_at.isoformat()
        parts = (identity.endpoint, identity.model, identity.directive_version, self.model, calibrated_at)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    async def ask(self, payer: Payer, claims: Sequence[Claim]) -> list[Judgement | None]:
        """Return the judgement of each claim, at the payer's expense: None for one without a clear verdict.

        If another model answers than the one that was measured, no verdict counts, and the judge is not
        trusted until it was measured again. Raises errors.OverBudget before a call, and errors.Unavailable.
        """
        judge_payer = replace(payer, purpose=Purpose.JUDGE)

        async def complete(system: str, user: str, schema: JsonSchema) -> str:
            reply = await metered_calls.complete(
                self._resources, self._language_model, judge_payer, system, user, schema
            )
            if reply.model != self.model:
                raise _OtherModelError
            return reply.text

        try:
            judgements = await judge.ask(complete, claims)
        except _OtherModelError:
            judgements = [None] * len(claims)
            async with self._resources.postgres.across_tenants() as tx:
                await queries.withdraw(tx, self._identity, self._measured.calibrated_at)
            self._resources.publisher.send(CALIBRATE_TASK)
        await self._count(judgements)
        return judgements

    async def _count(self, judgements: Sequence[Judgement | None]) -> None:
        names = Counter("none" if judgement is None else judgement.verdict for judgement in judgements)
        await fleet_counters.increment_detached(self._resources.postgres, {"judge_verdicts": names})
