"""Write logs: one JSON object per event, with the ids of the request or task, never the content of a memory.

Libraries log through the same formatter, but never below INFO: at DEBUG they log the requests that they
send, and those contain memories. The message of an exception is left out too, because a database
driver quotes the row that it could not write. The class and the location of the error are logged.
"""

import logging
import sys
import traceback
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from shared.foundation.config import Settings

_VERBOSE_LIBRARIES = ("httpx", "httpcore", "qdrant_client", "sqlalchemy", "opentelemetry")
_MAX_FRAMES = 8


def set_up(settings: Settings) -> None:
    """Configure logging for this process: JSON lines on standard error."""
    level = logging.getLevelNamesMapping().get(settings.log_level.upper(), logging.INFO)
    shared_processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _hide_exception_message,
    ]
    structlog.configure(
        processors=[*shared_processors, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # One write per line: several threads log, and the parts of a line could be interleaved.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _set_up_libraries(max(level, logging.INFO), shared_processors)


def _set_up_libraries(level: int, shared_processors: list[Processor]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared_processors],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level)
    for library in _VERBOSE_LIBRARIES:
        logging.getLogger(library).setLevel(logging.WARNING)


def _hide_exception_message(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Replace an exception by its class and its location."""
    exc_info = event.pop("exc_info", None)
    error = exc_info[1] if isinstance(exc_info, tuple) else sys.exception() if exc_info is True else exc_info
    if isinstance(error, BaseException):
        event.update(error=type(error).__name__, where=error_location(error))
    return event


def error_location(error: BaseException) -> list[str]:
    """Return the last frames of an exception's traceback as `file:line function`."""
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
