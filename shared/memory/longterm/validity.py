"""When a memory is valid: at t if `valid_from` <= t < `valid_until`, where null is open."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, DateTime, and_, func, literal, or_

from shared.memory.longterm.table import memory
from shared.search.index import filters
from shared.search.index.filters import Condition

_TIME_DIFFERENCE = timedelta(minutes=1)
"""How far the time of a process may be from that of Postgres, which decides."""


def latest(as_of: datetime | None) -> datetime:
    """Return the time until which something has begun at a time, or perhaps now."""
    return as_of or datetime.now(UTC) + _TIME_DIFFERENCE


def is_valid(as_of: datetime | None = None) -> ColumnElement[bool]:
    """Return the condition on rows that a memory is valid at a time, by default now."""
    moment: ColumnElement[Any] = func.now() if as_of is None else literal(as_of, DateTime(timezone=True))
    has_begun = or_(memory.c.valid_from.is_(None), memory.c.valid_from <= moment)
    has_not_ended = or_(memory.c.valid_until.is_(None), memory.c.valid_until > moment)
    return and_(has_begun, has_not_ended)


def may_be_valid(as_of: datetime | None, now: datetime) -> Condition:
    """Return the condition on points that a memory is valid at a time, or perhaps now."""
    earliest, latest = (
        (as_of, as_of) if as_of is not None else (now - _TIME_DIFFERENCE, now + _TIME_DIFFERENCE)
    )
    ended = filters.is_at_most("valid_until", earliest)
    not_begun = filters.is_later_than("valid_from", latest)
    return filters.none_of([ended, not_begun])
