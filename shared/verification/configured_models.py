"""The models that an installation asks, one for each purpose, and how each is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.infra.embedder import Embedder
from shared.infra.language_model import LanguageModel
from shared.infra.transaction import FleetTransaction
from shared.jobs import model_pauses
from shared.platform.resources import Resources
from shared.verification import judge_report
from shared.verification.stored_calibration import CalibrationState

NOT_CONFIGURED, CONFIGURED, PAUSED = "not_configured", "configured", "paused"


@dataclass(frozen=True, slots=True)
class ConfiguredModel:
    """A model by its purpose; `endpoint` is its host alone, since addresses may have secrets in them.

    `state` is one of the three above, or for the judge a `CalibrationState`. `trusted` is None for any other,
    and so is what was measured.
    """

    purpose: str
    endpoint: str | None = None
    model: str | None = None
    state: str = NOT_CONFIGURED
    trusted: bool | None = None
    calibrated_at: datetime | None = None
    figures: dict[str, Any] | None = None


async def list_models(resources: Resources) -> list[ConfiguredModel]:
    """Return the language model, the judge and the embedding model."""
    async with resources.postgres.across_tenants() as tx:
        return [
            await _describe(tx, "language", resources.language_model),
            await _describe_judge(tx, resources),
            await _describe(tx, "embedding", resources.embedder),
        ]


async def _describe(
    tx: FleetTransaction, purpose: str, client: LanguageModel | Embedder | None
) -> ConfiguredModel:
    if client is None:
        return ConfiguredModel(purpose)
    is_paused = await model_pauses.has_pause(tx, client.identity)
    return ConfiguredModel(purpose, client.host, client.model, PAUSED if is_paused else CONFIGURED)


async def _describe_judge(tx: FleetTransaction, resources: Resources) -> ConfiguredModel:
    if resources.judge_model is None:
        return ConfiguredModel("judge")
    report = await judge_report.report_in(tx, resources.settings, resources.judge_model)
    described = ConfiguredModel("judge", report.host, report.model, report.state, trusted=False)
    if report.measured is None:
        return described
    return ConfiguredModel(
        "judge",
        report.host,
        report.model,
        report.state,
        trusted=report.state is CalibrationState.TRUSTED,
        calibrated_at=report.measured.calibrated_at,
        figures=report.measured.trust.to_json(),
    )
