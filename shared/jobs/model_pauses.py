"""Pause a stage while its model's endpoint refuses every request: statements on the table `model_pause`.

A pause holds for the installation: all workers read it. Its jobs stay due and untouched. One request in an
interval is a probe, shared by all workers; a process with settings that were not refused yet probes at once.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import and_, any_, bindparam, delete, exists, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.types import Text

from shared.foundation.stages import REFUSALS_OF_MODEL, ReasonCode
from shared.infra.model_endpoint import ModelIdentity
from shared.infra.postgres import is_any_of, seconds
from shared.infra.transaction import Connection, FleetTransaction
from shared.jobs.table import model_pause


@dataclass(frozen=True, slots=True)
class Pause:
    """A paused stage. `seconds_to_probe` is the time until its next probe; 0 if it is due."""

    stage: str
    reason_code: ReasonCode
    since: datetime
    seconds_to_probe: float


async def find(tx: FleetTransaction, stage: str, identity: ModelIdentity) -> Pause | None:
    """Return the pause of a stage with this model, or None. For new settings its probe is due."""
    row = await tx.fetch_one(_FIND, _values(stage, identity))
    if row is None:
        return None
    wait_seconds = 0.0 if row["is_new"] else max(0.0, float(row["wait"]))
    return Pause(stage, ReasonCode(row["reason_code"]), row["since"], wait_seconds)


async def claim_probe(tx: FleetTransaction, stage: str, identity: ModelIdentity, interval: float) -> bool:
    """Tell whether the caller is to probe the model now: once in `interval` seconds for all workers."""
    rows = await tx.execute(
        update(model_pause)
        .where(*_is_of(stage, identity))
        .where(or_(model_pause.c.next_probe_at <= func.now(), ~_was_refused(identity)))
        .values(
            next_probe_at=func.now() + seconds(interval),
            refused_settings=func.array_append(
                func.array_remove(model_pause.c.refused_settings, identity.settings), identity.settings
            ),
        )
    )
    return rows.rowcount > 0


async def begin(
    tx: FleetTransaction, stage: str, identity: ModelIdentity, reason_code: ReasonCode, interval: float
) -> None:
    """Pause a stage, or note that it is refused for another reason now."""
    await tx.execute(
        delete(model_pause).where(*_is_of(stage, identity), model_pause.c.reason_code != reason_code)
    )
    next_probe_at = func.now() + seconds(interval)
    await tx.execute(
        insert(model_pause)
        .values(
            stage=stage,
            endpoint=identity.endpoint,
            model=identity.model,
            reason_code=reason_code,
            next_probe_at=next_probe_at,
            refused_settings=[identity.settings],
        )
        .on_conflict_do_update(
            index_elements=list(model_pause.primary_key),
            set_={
                "next_probe_at": next_probe_at,
                "refused_settings": func.array_append(
                    func.array_remove(model_pause.c.refused_settings, identity.settings), identity.settings
                ),
            },
        )
    )


async def end(tx: FleetTransaction, stage: str, identity: ModelIdentity) -> None:
    """End the pauses that an answer in a stage disproves: its own, and the model's in other stages."""
    await tx.execute(delete(model_pause).where(_is_disproved(stage, identity)))


async def is_any_disproved(tx: FleetTransaction, stage: str, identity: ModelIdentity) -> bool:
    """Tell whether an answer in this stage would end a pause."""
    row = await tx.fetch_one(_IS_ANY_DISPROVED, _values(stage, identity))
    return row is not None and row["is_disproved"]


async def has_pause(tx: FleetTransaction, identity: ModelIdentity) -> bool:
    """Tell whether any stage waits for this model."""
    of_model = (model_pause.c.endpoint == identity.endpoint, model_pause.c.model == identity.model)
    return bool(await tx.scalar(select(exists().where(*of_model))))


async def list_all(tx: Connection) -> list[Pause]:
    """Return all pauses, the longest first."""
    rows = await tx.execute(select(model_pause).order_by(model_pause.c.since, model_pause.c.stage))
    return [Pause(row.stage, ReasonCode(row.reason_code), row.since, 0.0) for row in rows]


async def delete_stale(tx: FleetTransaction, age: float) -> None:
    """Delete pauses that nobody has probed for `age` seconds: their model is no longer configured."""
    await tx.execute(delete(model_pause).where(model_pause.c.next_probe_at < func.now() - seconds(age)))


def _is_of(stage: str, identity: ModelIdentity) -> tuple[ColumnElement[bool], ...]:
    return (
        model_pause.c.stage == stage,
        model_pause.c.endpoint == identity.endpoint,
        model_pause.c.model == identity.model,
    )


def _is_disproved(stage: str, identity: ModelIdentity) -> ColumnElement[bool]:
    """Return the condition of `end`. What may be about the requests of one stage ends by its own answers."""
    is_of_stage, *is_of_model = _is_of(stage, identity)
    return and_(*is_of_model, or_(is_of_stage, is_any_of(model_pause.c.reason_code, REFUSALS_OF_MODEL)))


def _was_refused(identity: ModelIdentity) -> ColumnElement[bool]:
    return literal(identity.settings) == any_(model_pause.c.refused_settings)


# Every claim and every call asks these two, so they are constants, with parameters in place of a model.
_NAMES = ("endpoint", "model", "settings")
_ANY_STAGE: Any = bindparam("stage")
_ANY_MODEL = ModelIdentity(*(cast("str", bindparam(name)) for name in _NAMES))
_FIND = select(
    model_pause.c.reason_code,
    model_pause.c.since,
    (~(bindparam("settings", type_=Text) == any_(model_pause.c.refused_settings))).label("is_new"),
    func.extract("epoch", model_pause.c.next_probe_at - func.now()).label("wait"),
).where(*_is_of(_ANY_STAGE, _ANY_MODEL))
_IS_ANY_DISPROVED = select(exists().where(_is_disproved(_ANY_STAGE, _ANY_MODEL)).label("is_disproved"))


def _values(stage: str, identity: ModelIdentity) -> dict[str, str]:
    return {"stage": stage, **{name: getattr(identity, name) for name in _NAMES}}
