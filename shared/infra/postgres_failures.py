"""Tell the failures of Postgres that may pass from those that a request has caused."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import asyncpg
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from shared.foundation import errors

# Errors that can pass without a change of the request: the server is unreachable, starting or overloaded,
# or it cancelled the transaction.
TRANSIENT = (
    OSError,
    PoolTimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
    asyncpg.InterfaceError,
    asyncpg.InvalidCachedStatementError,
)

_MAX_ATTEMPTS = 5
P = ParamSpec("P")
T = TypeVar("T")


class failures_as_unavailable:  # noqa: N801  (read as a statement: `with failures_as_unavailable():`)
    """A context manager that turns transient failures into errors.Unavailable and ignores all others."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and _is_transient(error):
            raise errors.Unavailable("postgres", type(_driver_error(error)).__name__) from error


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, errors.LociError):
        return False
    if isinstance(error, DBAPIError) and (error.connection_invalidated or isinstance(error, InterfaceError)):
        return True
    return isinstance(error, (*TRANSIENT, OperationalError)) or isinstance(_driver_error(error), TRANSIENT)


def _driver_error(error: BaseException) -> BaseException:
    """Return the driver's error that SQLAlchemy has wrapped."""
    inner = getattr(error, "orig", None)
    return inner.__cause__ or inner if inner is not None else error


def repeated_after_deadlock(transaction: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Return a function of one transaction that begins again, up to five times, when it ends in a deadlock.

    Of transactions that wait for each other in a circle Postgres ends one, and the others go on. Nothing of
    the one that it ended was stored, and nothing is unavailable.
    """

    @wraps(transaction)
    async def repeated(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_MAX_ATTEMPTS - 1):
            try:
                return await transaction(*args, **kwargs)
            except errors.Unavailable as error:
                if error.reason != asyncpg.DeadlockDetectedError.__name__:
                    raise
        return await transaction(*args, **kwargs)

    return repeated
