"""Keys of working memory: their form, their namespaces, and who may write them.

A key is a path. Its first two segments are its namespace (`session/{id}`, `patrol/{name}`,
`subagent/{id}`); a key of one segment is a namespace of its own. Keys are compared without regard to
case and shown as they were first written.

A caller bound to a namespace writes only there and reads anywhere. For such a caller, `session/…`,
`patrol/…` and `subagent/…` of three or more segments are full paths. Every other key is relative, so
that `emails/today` can be read by the name under which it was saved. A prefix needs no third segment,
because a bound caller must be able to list `patrol` and `session/abc`.

`{key}-chunk{i}` and `{key}-index` name the read-only parts of a large value (see `large_values.py`). No
key with such a suffix can be written, so on reading the suffix alone decides.
"""

import re
from typing import NamedTuple

from shared.foundation import errors, validation
from shared.foundation.names import fold

MAX_LENGTH = 512
_KINDS = frozenset({"session", "patrol", "subagent"})
_NAMESPACE_SEGMENTS = 2
_SHAPE = re.compile(r"[A-Za-z0-9_.:-]+(/[A-Za-z0-9_.:-]+)*")
_RULE = "must be segments of ASCII letters, digits, '_', '-', '.' and ':', separated by single '/'"
_VIEW = re.compile(r"(?P<base>.+)-(?:(?P<index>index)|chunk(?P<chunk>0|[1-9][0-9]{0,8}))")
_RESERVED = re.compile(r".*-(index|chunk[0-9]+)")


class View(NamedTuple):
    """What a key reads: an entry, or the outline or one chunk of a large entry."""

    base: str
    outline: bool = False
    chunk: int | None = None

    @property
    def is_part(self) -> bool:
        """Whether the key names a part of an entry."""
        return self.outline or self.chunk is not None


def resolve(key: str, namespace: str | None, *, write: bool = False) -> str:
    """Return the full path that a caller means by `key`.

    `namespace` is the one that the caller is bound to, or None. Raises errors.Invalid for a bad key, and
    errors.Forbidden for a write outside the namespace.
    """
    path = _check_path(key, "key")
    if namespace is not None:
        bound = check_namespace(namespace)
        path = path if _is_full(path) else _check_path(f"{bound}/{path}", "key")
        _check_bound(path, bound, write=write)
    return check_writable(path) if write else path


def resolve_prefix(prefix: str, namespace: str | None, *, write: bool = False) -> str:
    """Return the full prefix that a caller means; an empty one means everything.

    A bound caller's empty prefix means its own namespace. Raises errors.Invalid for a bad prefix, and for
    clearing an empty one, which is more often a variable that was not set than an intention. Raises
    errors.Forbidden for clearing outside the namespace.
    """
    if not prefix:
        if write:
            raise errors.Invalid("prefix", "must not be empty")
        return "" if namespace is None else check_namespace(namespace)
    path = _check_path(prefix, "prefix")
    if namespace is None:
        return path
    bound = check_namespace(namespace)
    if normalize_key(path).split("/")[0] not in _KINDS and not is_within(path, bound):
        path = _check_path(f"{bound}/{path}", "prefix")
    _check_bound(path, bound, write=write)
    return path


def check_namespace(namespace: str) -> str:
    """Return a namespace that a caller can be bound to. Raises errors.Invalid unless it has two segments."""
    path = _check_path(namespace, "namespace")
    if path.count("/") != _NAMESPACE_SEGMENTS - 1:
        raise errors.Invalid("namespace", "must have two segments, such as session/abc")
    return path


def check_writable(key: str) -> str:
    """Return a full path that may be written. Raises errors.Invalid if it is none or names a part."""
    path = _check_path(key, "key")
    if _RESERVED.fullmatch(normalize_key(path)):
        raise errors.Invalid("key", "must not end in '-index' or '-chunk' and a number: read-only parts")
    return path


def check_key(key: str) -> str:
    """Return a full path that may be read. Raises errors.Invalid if it is none."""
    return _check_path(key, "key")


def parse_view(key: str) -> View:
    """Return what a key reads: a part of a large value if its suffix says so, else the entry."""
    normalized = normalize_key(key)
    match = _VIEW.fullmatch(normalized)
    if match is None:
        return View(normalized)
    chunk = match["chunk"]
    return View(match["base"], match["index"] is not None, None if chunk is None else int(chunk))


def normalize_key(path: str) -> str:
    """Return the form in which keys are compared."""
    return fold(path)


def namespace_of(path: str) -> str:
    """Return the first two segments, normalised. A path of one segment is its own namespace."""
    return "/".join(normalize_key(path).split("/", _NAMESPACE_SEGMENTS)[:_NAMESPACE_SEGMENTS])


def spans_namespaces(prefix: str) -> bool:
    """Return whether a prefix may contain more than one namespace."""
    return "/" not in prefix


def is_within(path: str, prefix: str) -> bool:
    """Return whether `path` is `prefix` or below it, by whole segments and without regard to case."""
    return not prefix or f"{normalize_key(path)}/".startswith(f"{normalize_key(prefix)}/")


def _check_path(path: str, field: str) -> str:
    validation.check_path_shape(path, field)
    if len(parse_view(path).base) > MAX_LENGTH:  # parts of the longest key must be readable too
        raise errors.TooLarge(field, f"must be at most {MAX_LENGTH} characters")
    if _SHAPE.fullmatch(path) is None:
        raise errors.Invalid(field, _RULE)
    if "." in path.split("/"):
        # HTTP clients shorten `a/./b` to `a/b`, so such a key could not be read.
        raise errors.Invalid(field, "must not have a '.' segment")
    return path


def _is_full(path: str) -> bool:
    segments = normalize_key(path).split("/")
    return segments[0] in _KINDS and len(segments) > _NAMESPACE_SEGMENTS


def _check_bound(path: str, bound: str, *, write: bool) -> None:
    if write and not is_within(path, bound):
        raise errors.Forbidden(f"writes are bound to the namespace '{bound}'")
