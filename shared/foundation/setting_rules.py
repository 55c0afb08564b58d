"""Rules on settings that their types cannot say."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cronsim import CronSim, CronSimError


def require_cron(expression: str | None) -> str | None:
    """Return a cron expression that names a time; raise ValueError for any other."""
    if expression is not None and not _is_cron(expression):
        raise ValueError("must be five cron fields that name a time: minute hour day month weekday")
    return expression


def _is_cron(expression: str) -> bool:
    try:
        next(CronSim(expression, datetime.now(UTC)))
    except (CronSimError, StopIteration):
        return False
    return len(expression.split()) == 5


def require_smaller_step(step: int, others: Mapping[str, Any]) -> int:
    """Return the step of a window that fits into what is kept of a conversation, or raise ValueError.

    `others` are the settings that were read before. One that is missing was refused itself.
    """
    size = others.get("context_window_turns", step + 1)
    if step >= size:
        raise ValueError("must be less than LOCI_CONTEXT_WINDOW_TURNS")
    if size > others.get("window_max_turns", size) + 1:
        raise ValueError("LOCI_CONTEXT_WINDOW_TURNS may be at most one more than LOCI_WINDOW_MAX_TURNS")
    return step


def require_smaller_overlap(overlap: int, others: Mapping[str, Any]) -> int:
    """Return the overlap of chunks if it is less than a chunk, or raise ValueError."""
    if overlap >= others.get("document_chunk_chars", overlap + 1):
        raise ValueError("must be less than LOCI_DOCUMENT_CHUNK_CHARS")
    return overlap
