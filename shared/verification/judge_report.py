"""What is known of the configured judge, for people: whether it is trusted, and the figures behind that."""

from dataclasses import dataclass

from shared.foundation import config
from shared.infra.language_model import LanguageModel
from shared.infra.transaction import FleetTransaction
from shared.platform.resources import Resources
from shared.verification import queries
from shared.verification.judge_identity import identity_of
from shared.verification.stored_calibration import CalibrationState, Measured
from shared.verification.trusted_judge import max_age_seconds


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The state of a judge. `measured` is what the state rests on: None while it is measured.

    `answer_count` is how many labelled pairs a measurement in progress has asked.
    """

    host: str
    model: str
    state: CalibrationState
    measured: Measured | None
    answer_count: int


async def read_judge_report(resources: Resources) -> JudgeReport | None:
    """Return the state of the configured judge, or None without one."""
    if resources.judge_model is None:
        return None
    async with resources.postgres.across_tenants() as tx:
        return await report_in(tx, resources.settings, resources.judge_model)


async def report_in(tx: FleetTransaction, settings: config.Settings, model: LanguageModel) -> JudgeReport:
    """Return the state of a judge, in the caller's transaction."""
    identity = identity_of(model)
    row = await queries.find(tx, identity)
    if row is None:
        return JudgeReport(model.host, model.model, CalibrationState.MEASURING, None, 0)
    state, measured = CalibrationState(row["state"]), Measured.from_row(row)
    if state is CalibrationState.TRUSTED:
        measured = await queries.find_trusted(tx, identity, max_age_seconds(settings))
    if measured is None or state is CalibrationState.MEASURING:
        return JudgeReport(model.host, model.model, CalibrationState.MEASURING, None, len(row["answers"]))
    return JudgeReport(model.host, measured.model, state, measured, len(row["answers"]))
