"""Translate the engine's exceptions into Loci's errors.

The engine raises a bare `Exception` with a Qdrant server's wording for nearly everything, so the
wording decides. A missing point is NotFound. An internal failure ("Service …", a full disk) is
raised unchanged and becomes a 500. Everything else is an invalid request.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from shared.foundation import errors

_MISSING_POINT = "No point with id"
_INTERNAL_FAILURES = ("Service", "Out of memory", "Inconsistent", "Operation is cancelled")


@contextmanager
def refused(at: str) -> Iterator[None]:
    """Raise NotFound or Invalid instead of an exception of the engine."""
    try:
        yield
    except errors.LociError:
        raise
    except Exception as error:
        message = (str(error).splitlines() or [""])[0]
        if message.startswith(_MISSING_POINT):
            raise errors.NotFound(f"Not found: {message} found") from None
        if message.startswith(_INTERNAL_FAILURES) or isinstance(error, OSError):
            raise
        raise errors.Invalid(at, message) from None
