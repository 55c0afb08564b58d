"""Validation that all state stores share, so that they reject the same input with the same messages."""

from collections import abc

from shared.conversation.state.protocol import ABSENT, EXISTS, StateStore
from shared.conversation.state.types import OPERATIONS
from shared.foundation import errors, validation

MAX_NAME_LENGTH = 256


def check_operation(store: StateStore, operation: str) -> None:
    """Raise errors.Unsupported for an operation that this kind of owner does not have."""
    if operation not in OPERATIONS[store.owner.kind]:
        raise errors.Unsupported(store.name, operation)


def check_key(store: StateStore, key: str) -> None:
    """Raise errors.Invalid for a key that a database can't store or a URL can't contain."""
    check_operation(store, "kv")
    _check_name(key, "key", allow_blank=True)


def check_label(store: StateStore, label: str) -> None:
    """Raise errors.Invalid for a label that a database can't store or a URL can't contain."""
    check_operation(store, "collections")
    _check_name(label, "label", allow_blank=False)


def _check_name(name: str, field: str, *, allow_blank: bool) -> None:
    validation.check_text(name, field, MAX_NAME_LENGTH, allow_blank=allow_blank)
    if not {".", ".."}.isdisjoint(name.split("/")):
        # HTTP clients shorten `a/./b` to `a/b`, so a value under such a name could not be read back.
        raise errors.Invalid(field, "must not have a '.' or '..' segment")


def check_version(label: str, version: int, expected: abc.Collection[int] | None) -> None:
    """Raise errors.PreconditionFailed unless the stored version (0: no collection) is an expected one."""
    if expected is None or version in expected or (version and EXISTS in expected):
        return
    raise version_conflict(label, version, expected)


def check_replacement(label: str, version: int, expected: abc.Collection[int] | None) -> None:
    """Check a version as `check_version`. Raise errors.PreconditionRequired to replace it unnamed."""
    if expected is None and version != ABSENT:
        raise version_conflict(label, version, expected)
    check_version(label, version, expected)


def version_conflict(label: str, version: int, expected: abc.Collection[int] | None) -> errors.Conflict:
    """Return the error for a writer who expected another version, or who must say which one to replace."""
    state = f"is at version {version}" if version else "is not there"
    if expected is None:
        return errors.PreconditionRequired(
            f"collection '{label}' {state}: name the version that you replace in If-Match"
        )
    return errors.PreconditionFailed(
        f"collection '{label}' {state}: read it again and apply your change to that"
    )
