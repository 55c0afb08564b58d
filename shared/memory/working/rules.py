"""What may be written to working memory."""

from collections.abc import Iterable

from shared.foundation import errors, validation
from shared.foundation.config import Settings
from shared.foundation.origin import UNKNOWN, Origin
from shared.memory.working import codec, keys

MAX_TTL_SECONDS = 366 * 24 * 3600
MAX_VALUE_BYTES = 1024 * 1024
"""The size of a value in UTF-8: what a request may carry, however many have appended to it."""


def check_entry(
    settings: Settings,
    key: str,
    value: str,
    *,
    ttl_seconds: float | None = None,
    category: str | None = None,
    tags: Iterable[str] = (),
    origin: Origin = UNKNOWN,
) -> tuple[str, int, str]:
    """Return an entry's path, its milliseconds to live and its packed details.

    Raises errors.Invalid if the entry may not be written.
    """
    path = keys.check_writable(key)
    validation.check_text(value, "value", allow_blank=True)
    if len(value.encode()) > MAX_VALUE_BYTES:
        raise too_long("value")
    is_large = len(value) > settings.working_chunk_threshold
    if ttl_seconds is None:
        ttl_seconds = settings.working_chunked_ttl if is_large else settings.working_ttl
    return path, _to_ms(ttl_seconds), codec.pack(category, tags, origin, large=is_large)


def check_append(key: str, text: str, *, ttl_seconds: float | None) -> tuple[str, int | None]:
    """Return an entry's path, and its milliseconds to live if they start anew.

    Raises errors.Invalid if the text may not be appended.
    """
    path = keys.check_writable(key)
    validation.check_text(text, "append", allow_blank=True)
    if not text:
        raise errors.Invalid("append", "must not be empty")
    return path, None if ttl_seconds is None else _to_ms(ttl_seconds)


def _to_ms(ttl_seconds: float) -> int:
    if not 0 < ttl_seconds <= MAX_TTL_SECONDS:
        raise errors.Invalid("ttl_seconds", f"must be more than 0 and at most {MAX_TTL_SECONDS}")
    return max(1, int(ttl_seconds * 1000))


def too_long(field: str) -> errors.TooLarge:
    """Return the error for a field that would make a value too long."""
    return errors.TooLarge(field, f"must not make the value longer than {MAX_VALUE_BYTES} bytes of UTF-8")
