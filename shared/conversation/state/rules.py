"""Validation that all state stores share, so that they reject the same input with the same messages."""

from shared.conversation.state.protocol import StateStore
from shared.conversation.state.types import OPERATIONS
from shared.foundation import errors, validation, versions
from shared.foundation.versions import ABSENT, Expected

MAX_NAME_LENGTH = 256


def check_operation(store: StateStore, operation: str) -> None:
    """Raise errors.Unsupported for an operation that this kind of owner does not have."""
    if operation not in OPERATIONS[store.owner.kind]:
        raise errors.Unsupported(store.name, operation)


def check_key(store: StateStore, key: str) -> None:
    """Raise errors.Invalid for a key that a database can't store or a URL can't contain."""
    check_operation(store, "kv")
    check_name(key, "key", allow_blank=True)


def check_label(store: StateStore, label: str) -> None:
    """Raise errors.Invalid for a label that a database can't store or a URL can't contain."""
    check_operation(store, "collections")
    check_name(label, "label", allow_blank=False)


def check_name(name: str, field: str, *, allow_blank: bool) -> None:
    """Raise errors.Invalid for the name of a key or a collection that can't be stored or addressed."""
    validation.check_text(name, field, MAX_NAME_LENGTH, allow_blank=allow_blank)
    if not {".", ".."}.isdisjoint(name.split("/")):
        # HTTP clients shorten `a/./b` to `a/b`, so a value under such a name could not be read back.
        raise errors.Invalid(field, "must not have a '.' or '..' segment")


def check_replacement(label: str, version: int, expected: Expected | None) -> None:
    """Raise errors.PreconditionFailed for a stored version of a collection that is not expected.

    Raise errors.PreconditionRequired to replace a collection without a condition.
    """
    if expected is None and version != ABSENT:
        raise unnamed_replacement(label, version)
    versions.check(collection_name(label), version, expected)


def unnamed_replacement(label: str, version: int) -> errors.PreconditionRequired:
    """Return the error for a writer who must say which version of a collection to replace."""
    return errors.PreconditionRequired(
        f"{collection_name(label)} is at version {version}: name the version that you replace in If-Match"
    )


def key_name(key: str) -> str:
    """Return how a failed condition names a key."""
    return f"key '{key}'"


def collection_name(label: str) -> str:
    """Return how a failed condition names a collection."""
    return f"collection '{label}'"
