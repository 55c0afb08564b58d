"""What every store refuses, in the same words."""

from collections.abc import Collection as Several

from shared.conversation.state.protocol import EXISTS, StateStore
from shared.conversation.state.types import OPERATIONS
from shared.foundation import errors, validation

MAX_NAME = 256


def check_operation(store: StateStore, operation: str) -> None:
    """Raise errors.Unsupported for what the store's owner has no use for."""
    if operation not in OPERATIONS[store.owner.kind]:
        raise errors.Unsupported(store.name, operation)


def check_key(store: StateStore, key: str) -> None:
    """Raise errors.Invalid for a key that not every store holds, or no address can name."""
    check_operation(store, "kv")
    _check_name(key, "key", allow_blank=True)


def check_label(store: StateStore, label: str) -> None:
    """Raise errors.Invalid for a label that not every store holds, or no address can name."""
    check_operation(store, "collections")
    _check_name(label, "label", allow_blank=False)


def _check_name(name: str, field: str, *, allow_blank: bool) -> None:
    validation.check_text(name, field, MAX_NAME, allow_blank=allow_blank)
    if not {".", ".."}.isdisjoint(name.split("/")):
        # HTTP clients fold `a/./b` to `a/b` on the way, so such a name could not be read back.
        raise errors.Invalid(field, "must not have a '.' or '..' segment")


def check_version(label: str, found: int, expected: Several[int] | None) -> None:
    """Raise errors.Conflict unless the version that was found (0: none) is one that is expected."""
    if expected is None or found in expected or (found and EXISTS in expected):
        return
    raise version_conflict(label, found)


def version_conflict(label: str, found: int) -> errors.Conflict:
    """Return the error of a writer who expected another version."""
    state = f"is at version {found}" if found else "is not there"
    return errors.Conflict(f"collection '{label}' {state}: read it again and apply your change to that")
