"""What a task may fail by, as Celery sees it: it logs messages and sends them to Flower.

Our own errors say nothing of a memory's content; of any other, a driver's above all, nobody knows.
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
    """What nobody foresaw, by its kind and without its message."""


@contextmanager
def hide_messages() -> Iterator[None]:
    """Let our own errors through without their causes, and of others their kind."""
    try:
        yield
    except concurrent.futures.CancelledError:
        raise Ignore("given back, because the worker stops") from None
    except errors.LociError as error:
        raise error from None
    except Exception as error:  # noqa: BLE001  (whatever it is, its message goes no further)
        log.error("unexpected_error", error=type(error).__name__, where=error_location(error))  # noqa: TRY400
        raise UnexpectedError(type(error).__name__) from None
