"""What the engine throws, as errors of ours.

It raises a bare `Exception` with the server's own wording for nearly everything, so the wording
decides: a missing point is NotFound, a fault of its own ("Service …", a full disk) passes through
and becomes a 500, the rest is the caller's mistake.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from shared.foundation import errors

_MISSING = "No point with id"
_OWN_FAULT = ("Service", "Out of memory", "Inconsistent", "Operation is cancelled")


@contextmanager
def refused(at: str) -> Iterator[None]:
    """Raise NotFound or Invalid in place of what the engine raises in this block."""
    try:
        yield
    except errors.LociError:
        raise
    except Exception as error:
        said = (str(error).splitlines() or [""])[0]
        if said.startswith(_MISSING):
            raise errors.NotFound(f"Not found: {said} found") from None
        if said.startswith(_OWN_FAULT) or isinstance(error, OSError):
            raise
        raise errors.Invalid(at, said) from None
