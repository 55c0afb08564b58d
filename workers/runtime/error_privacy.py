"""Hide the messages of unexpected errors from Celery, which logs them and sends them to Flower.

The messages of Loci's own errors never contain a memory's content. The message of any other error, such
as a database driver's, may.
"""

import concurrent.futures
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from celery.exceptions import Ignore

from shared.foundation import errors
from shared.infra.telemetry.logs import error_location

log = structlog.get_logger()


class UnexpectedError(Exception):
    """An unexpected error, which names the type of the original error but not its message."""


@contextmanager
def hide_messages() -> Iterator[None]:
    """Raise Loci's own errors without their causes, and replace any other by UnexpectedError.

    Raise celery's Ignore for a task that is cancelled because the worker stops.
    """
    try:
        yield
    except concurrent.futures.CancelledError:
        raise Ignore("its jobs were released, because the worker stops") from None
    except errors.LociError as error:
        raise error from None
    except Exception as error:  # noqa: BLE001  (the message of any error may contain content)
        log.error("unexpected_error", error=type(error).__name__, where=error_location(error))  # noqa: TRY400
        raise UnexpectedError(type(error).__name__) from None
