"""Versions as the condition of a write: compare and set.

A condition is the set of versions of which the stored one must be a member, or None for no condition. Whoever
stores a version compares it in the same step in which it writes.
"""

from collections.abc import Collection

from shared.foundation import errors

# Members of a condition that are no versions: nothing is stored, and something of any version is.
ABSENT = 0
EXISTS = -1
Expected = Collection[int]
"""The versions of which the stored one must be a member, perhaps with ABSENT and EXISTS."""


def check(what: str, version: int, expected: Expected | None) -> None:
    """Raise errors.PreconditionFailed unless the stored version (0: nothing is stored) meets a condition."""
    if expected is None or version in expected or (version and EXISTS in expected):
        return
    raise mismatch(what, version)


def mismatch(what: str, version: int) -> errors.PreconditionFailed:
    """Return the error for a writer whose condition the stored version does not meet."""
    if version:
        return errors.PreconditionFailed(
            f"{what} is at version {version}: read it again and apply your change to that"
        )
    return errors.PreconditionFailed(f"{what} is not there: read it again and apply your change to that")
