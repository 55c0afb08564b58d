"""Keys of the desk: what they look like, which namespace they lie in, who may write them.

A key is a path; its first two segments are its namespace (`session/{id}`, `patrol/{name}`,
`subagent/{id}`), a key of one segment is a namespace of its own. Keys are compared without regard
to case and shown as they were first written.

A caller bound to a namespace writes there only and reads anywhere. For it, `session/…`, `patrol/…`
and `subagent/…` of three segments and more are full paths; every other key is relative, so that
`emails/today` can be read back by the name it was saved under. A prefix has no such minimum:
`patrol` and `session/abc` must be listable by a bound caller.

`{key}-chunk{i}` and `{key}-index` name the read-only parts of a large value (`chunks.py`). No key
may be written under such a name, so on reading the suffix alone decides.
"""

import re
from typing import NamedTuple

from shared.foundation import errors, validation

MAX_LENGTH = 512
_KINDS = frozenset({"session", "patrol", "subagent"})
_NAMESPACE_SEGMENTS = 2
_SHAPE = re.compile(r"[A-Za-z0-9_.:-]+(/[A-Za-z0-9_.:-]+)*")
_RULE = "must be segments of ASCII letters, digits, '_', '-', '.' and ':', separated by single '/'"
_VIEW = re.compile(r"(?P<base>.+)-(?:(?P<index>index)|chunk(?P<chunk>0|[1-9][0-9]{0,8}))")
_RESERVED = re.compile(r".*-(index|chunk[0-9]+)")


class View(NamedTuple):
    """What a key reads: an entry, and of a large entry perhaps the outline or one chunk."""

    base: str
    outline: bool = False
    chunk: int | None = None

    @property
    def is_part(self) -> bool:
        """Whether a part is meant, not the entry itself."""
        return self.outline or self.chunk is not None


def resolve(key: str, namespace: str | None, *, write: bool = False) -> str:
    """Return the full path that a caller means by `key`.

    `namespace` is what the caller is bound to, None for nothing. Raises Invalid for a bad key,
    Forbidden for a write outside the namespace.
    """
    path = _checked(key, "key")
    if namespace is not None:
        bound = check_namespace(namespace)
        path = path if _is_full(path) else _checked(f"{bound}/{path}", "key")
        _check_bound(path, bound, write=write)
    return check_writable(path) if write else path


def resolve_prefix(prefix: str, namespace: str | None, *, write: bool = False) -> str:
    """Return the full prefix that a caller means; an empty one is everything.

    A bound caller's empty prefix is its own namespace. Clearing an empty prefix is Invalid
    either way: it is more often a variable that was not set than an intention.
    """
    if not prefix:
        if write:
            raise errors.Invalid("prefix", "must not be empty")
        return "" if namespace is None else check_namespace(namespace)
    path = _checked(prefix, "prefix")
    if namespace is None:
        return path
    bound = check_namespace(namespace)
    if normalize_key(path).split("/")[0] not in _KINDS and not is_within(path, bound):
        path = _checked(f"{bound}/{path}", "prefix")
    _check_bound(path, bound, write=write)
    return path


def check_namespace(namespace: str) -> str:
    """Return a namespace that a caller can be bound to: exactly two segments."""
    path = _checked(namespace, "namespace")
    if path.count("/") != _NAMESPACE_SEGMENTS - 1:
        raise errors.Invalid("namespace", "must have two segments, such as session/abc")
    return path


def check_writable(key: str) -> str:
    """Return a full path that may be written; Invalid if it is not one or names a part of a value."""
    path = _checked(key, "key")
    if _RESERVED.fullmatch(normalize_key(path)):
        raise errors.Invalid("key", "must not end in '-index' or '-chunk' and a number: read-only parts")
    return path


def check_key(key: str) -> str:
    """Return a full path that may be read."""
    return _checked(key, "key")


def parse_view(key: str) -> View:
    """Return what a key reads: a part of a large value by its suffix, else the entry itself."""
    folded = normalize_key(key)
    match = _VIEW.fullmatch(folded)
    if match is None:
        return View(folded)
    chunk = match["chunk"]
    return View(match["base"], match["index"] is not None, None if chunk is None else int(chunk))


def normalize_key(path: str) -> str:
    """Return the form in which keys are compared."""
    return path.lower()


def namespace_of(path: str) -> str:
    """Return the first two segments, folded; a path of one segment is its own namespace."""
    return "/".join(normalize_key(path).split("/", _NAMESPACE_SEGMENTS)[:_NAMESPACE_SEGMENTS])


def spans_namespaces(prefix: str) -> bool:
    """Tell whether a prefix reaches over more than one namespace."""
    return "/" not in prefix


def is_within(path: str, prefix: str) -> bool:
    """Tell whether `path` is `prefix` or lies beneath it; by whole segments, without regard to case."""
    return not prefix or f"{normalize_key(path)}/".startswith(f"{normalize_key(prefix)}/")


def _checked(path: str, field: str) -> str:
    validation.check_path_shape(path, field)
    if len(parse_view(path).base) > MAX_LENGTH:  # the longest key's parts must be readable too
        raise errors.TooLarge(field, f"must be at most {MAX_LENGTH} characters")
    if _SHAPE.fullmatch(path) is None:
        raise errors.Invalid(field, _RULE)
    if "." in path.split("/"):
        # HTTP clients fold `a/./b` to `a/b` on the way, so such a key could not be read back.
        raise errors.Invalid(field, "must not have a '.' segment")
    return path


def _is_full(path: str) -> bool:
    segments = normalize_key(path).split("/")
    return segments[0] in _KINDS and len(segments) > _NAMESPACE_SEGMENTS


def _check_bound(path: str, bound: str, *, write: bool) -> None:
    if write and not is_within(path, bound):
        raise errors.Forbidden(f"writes are bound to the namespace '{bound}'")
