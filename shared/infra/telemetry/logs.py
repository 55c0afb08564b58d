"""Logs: one JSON object per event, with ids bound once per request or task, never a memory's content.

Libraries log through the same formatter. They are never heard below INFO: at DEBUG they quote what
they send, and that is memories. Nor is the message of any exception shown: a driver's says which row
it could not write. What kind it was, and where, is enough to find it.
"""

import logging
import sys
import traceback
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

from shared.foundation.config import Settings

_CHATTY = ("httpx", "httpcore", "qdrant_client", "sqlalchemy", "opentelemetry")
_FRAMES = 8


def set_up(settings: Settings) -> None:
    """Configure logging for this process: JSON lines on standard error."""
    level = logging.getLevelNamesMapping().get(settings.log_level.upper(), logging.INFO)
    told: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_message,
    ]
    structlog.configure(
        processors=[*told, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # One write a line: several threads log, and a line in two parts is two halves of others.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _set_up_libraries(max(level, logging.INFO), told)


def _set_up_libraries(level: int, told: list[Processor]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *told],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=level)
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _without_message(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Tell of an exception what it was and where it came from."""
    told = event.pop("exc_info", None)
    error = told[1] if isinstance(told, tuple) else sys.exception() if told is True else told
    if isinstance(error, BaseException):
        event.update(error=type(error).__name__, where=error_location(error))
    return event


def error_location(error: BaseException) -> list[str]:
    """Return where an exception came from: its last frames as `file:line function`."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
