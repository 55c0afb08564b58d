"""Every statement on calibrations of judges, and on what they have used.

The time of the database decides. Whoever measures a judge has a lease, and records only under its token, so
that two workers never ask the same, and what a dead one was asking becomes due again by itself.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, bindparam, delete, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from shared.infra.postgres import seconds
from shared.infra.transaction import FleetTransaction
from shared.verification.judge_identity import JudgeIdentity
from shared.verification.stored_calibration import CalibrationState, Measured, Measurement
from shared.verification.table import judge_calibration, judge_calibration_spend
from shared.verification.trust import Trust

_COLUMNS = judge_calibration.c
_KEY = ("endpoint", "model", "directive_version")
_IS_FREE = or_(_COLUMNS.leased_until.is_(None), _COLUMNS.leased_until <= func.now())
_ENDS_LEASE = {"lease_token": None, "leased_until": None}

_FIND_TRUSTED = select(judge_calibration).where(
    *(_COLUMNS[name] == bindparam(name) for name in _KEY),
    _COLUMNS.state == CalibrationState.TRUSTED,
    _COLUMNS.calibrated_at > func.now() - seconds(bindparam("max_age")),
)


async def find_trusted(tx: FleetTransaction, identity: JudgeIdentity, max_age: float) -> Measured | None:
    """Return what was measured of a judge that is trusted, at most `max_age` seconds ago; else None."""
    row = await tx.fetch_one(_FIND_TRUSTED, {**_key_of(identity), "max_age": max_age})
    return None if row is None else Measured.from_row(row)


async def find(tx: FleetTransaction, identity: JudgeIdentity) -> RowMapping | None:
    """Return the row of a judge, or None if nobody has begun to measure it."""
    rows = await tx.execute(select(judge_calibration).where(_is_judge(identity)))
    return rows.mappings().one_or_none()


async def is_due(tx: FleetTransaction, identity: JudgeIdentity, interval: float) -> bool:
    """Tell whether a judge is to be measured now, and nobody does it."""
    row = await find(tx, identity)
    if row is None:
        return True
    due = select(_COLUMNS.endpoint).where(_is_judge(identity), _IS_FREE, _is_due(interval))
    return await tx.scalar(due) is not None


async def claim(
    tx: FleetTransaction, identity: JudgeIdentity, interval: float, lease: float
) -> Measurement | None:
    """Claim the measurement of a judge for `lease` seconds; None if it is not due, or somebody has it.

    It is due if there is no calibration that still holds, or the last is `interval` seconds old.
    """
    values = {**_key_of(identity), "host": identity.host}
    await tx.execute(insert(judge_calibration).values(values).on_conflict_do_nothing())
    rows = await tx.execute(
        update(judge_calibration)
        .where(_is_judge(identity), _IS_FREE, _is_due(interval))
        .values(lease_token=func.gen_random_uuid(), leased_until=func.now() + seconds(lease))
        .returning(judge_calibration)
    )
    row = rows.mappings().one_or_none()
    return None if row is None else Measurement.from_row(row)


async def renew(tx: FleetTransaction, lease_token: str, lease: float) -> bool:
    """Hold a lease for `lease` more seconds; tell whether it was still held."""
    return await _update_leased(tx, lease_token, {"leased_until": func.now() + seconds(lease)})


async def record(
    tx: FleetTransaction,
    lease_token: str,
    answers: Mapping[str, str | None],
    model: str | None,
    *,
    anew: bool,
) -> bool:
    """Add answers of `model` by pair id, or store them in place of all others if they are begun anew.

    Tell whether the lease was still held.
    """
    new_answers = dict(answers) if anew else _COLUMNS.answers.concat(dict(answers))
    return await _update_leased(tx, lease_token, {"answers": new_answers, "answering_model": model})


async def finish(tx: FleetTransaction, lease_token: str, model: str, trust: Trust) -> bool:
    """Store what a measurement has shown, end its lease, and tell whether it was still held."""
    return await _update_leased(tx, lease_token, _outcome(model, trust))


async def store(tx: FleetTransaction, identity: JudgeIdentity, model: str, trust: Trust) -> None:
    """Store what somebody has measured without a lease; a running measurement is then not needed."""
    outcome = _outcome(model, trust)
    values = {**_key_of(identity), "host": identity.host, **outcome}
    statement = insert(judge_calibration).values(values)
    await tx.execute(statement.on_conflict_do_update(index_elements=list(_KEY), set_=outcome))


async def release(tx: FleetTransaction, lease_token: str) -> None:
    """End a lease: another worker may go on at once."""
    await _update_leased(tx, lease_token, _ENDS_LEASE)


async def postpone(tx: FleetTransaction, lease_token: str, delay: float) -> None:
    """End a lease after a failure: nobody goes on within `delay` seconds."""
    values = {"not_before": func.now() + seconds(delay), "failures": _COLUMNS.failures + 1}
    await _update_leased(tx, lease_token, values | _ENDS_LEASE)


async def withdraw(tx: FleetTransaction, identity: JudgeIdentity, calibrated_at: datetime) -> None:
    """Trust a judge no longer by this calibration, and make it due: its endpoint serves another model."""
    of_calibration = (_is_judge(identity), _COLUMNS.calibrated_at == calibrated_at)
    values = {"state": CalibrationState.MEASURING, "not_before": func.now()}
    await tx.execute(update(judge_calibration).where(*of_calibration).values(values))


async def delete_unused(tx: FleetTransaction, age: float) -> None:
    """Delete judges of which nothing was measured or tried for `age` seconds: they are configured no more."""
    last_at = func.greatest(_COLUMNS.not_before, _COLUMNS.calibrated_at)
    await tx.execute(delete(judge_calibration).where(last_at < func.now() - seconds(age), _IS_FREE))


_WEEK = "CAST(date_trunc('week', now() AT TIME ZONE 'UTC') AS date)"
_RESERVE = text(
    f"""
    INSERT INTO judge_calibration_spend (week, tokens)
    SELECT {_WEEK}, :tokens WHERE CAST(:tokens AS bigint) <= CAST(:limit AS bigint)
    ON CONFLICT (week) DO UPDATE SET tokens = judge_calibration_spend.tokens + excluded.tokens
    WHERE judge_calibration_spend.tokens + excluded.tokens <= CAST(:limit AS bigint)
    RETURNING week
    """
)
_BOOK = text(
    f"""
    INSERT INTO judge_calibration_spend (week, tokens) VALUES ({_WEEK}, :tokens)
    ON CONFLICT (week) DO UPDATE SET tokens = judge_calibration_spend.tokens + excluded.tokens
    """  # noqa: S608
)


async def reserve(tx: FleetTransaction, tokens: int, limit: int) -> date | None:
    """Book the most tokens that a call can use in this week, and return the week; None if it has no room."""
    row = await tx.fetch_one(_RESERVE, {"tokens": tokens, "limit": limit})
    return None if row is None else row["week"]


async def correct(tx: FleetTransaction, week: date, tokens: int) -> None:
    """Add tokens, which may be negative, to what was booked in a week; forget the weeks before it."""
    spend = judge_calibration_spend
    await tx.execute(update(spend).where(spend.c.week == week).values(tokens=spend.c.tokens + tokens))
    await tx.execute(delete(spend).where(spend.c.week < week))


async def book(tx: FleetTransaction, tokens: int) -> None:
    """Book tokens that somebody has used in this week, whatever room it has."""
    await tx.fetch(_BOOK, {"tokens": tokens})


def _key_of(identity: JudgeIdentity) -> dict[str, str]:
    return {name: value for name, value in asdict(identity).items() if name in _KEY}


def _is_judge(identity: JudgeIdentity) -> ColumnElement[bool]:
    return and_(*(_COLUMNS[name] == value for name, value in _key_of(identity).items()))


def _is_due(interval: float) -> ColumnElement[bool]:
    is_outdated = _COLUMNS.calibrated_at <= func.now() - seconds(interval)
    holds_nothing = _COLUMNS.state == CalibrationState.MEASURING
    return and_(_COLUMNS.not_before <= func.now(), or_(holds_nothing, is_outdated))


async def _update_leased(tx: FleetTransaction, lease_token: str, values: Mapping[str, Any]) -> bool:
    is_leased = _COLUMNS.lease_token == lease_token
    result = await tx.execute(update(judge_calibration).where(is_leased).values(dict(values)))
    return result.rowcount > 0


def _outcome(model: str, trust: Trust) -> dict[str, Any]:
    return {
        "state": CalibrationState.TRUSTED if trust.is_trusted else CalibrationState.NOT_TRUSTED,
        "calibrated_model": model,
        "figures": trust.to_json(),
        "calibrated_at": func.now(),
        "answers": {},
        "answering_model": None,
        "not_before": func.now(),
        "failures": 0,
        **_ENDS_LEASE,
    }
