"""The rules for names and texts that come from outside, one place for all capabilities.

Each `check_*` returns what is to be stored or raises `errors.Invalid` (`TooLarge` for a size) with
the field and the rule that was broken. The message never repeats the value: a refused value may not
even be encodable. Patterns are applied with `fullmatch`: `$` would let a trailing newline pass.

Lone surrogates and NUL are refused everywhere, because Postgres, JSON and Redis disagree about them
and what one store takes the next one would lose. What a model writes is not refused but cleaned
(`clean_category`): an entry is never lost for the category that a model gave it.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from shared.foundation import errors

MAX_CATEGORY_LENGTH = 256
MAX_IDENTIFIER_LENGTH = 128
MAX_TAGS = 64
MAX_TAG_LENGTH = 64
MAX_METADATA_PAIRS = 64
MAX_METADATA_KEY_LENGTH = 64
MAX_METADATA_VALUE_LENGTH = 1024
_FIRST_YEAR, _LAST_YEAR = 2, 9998

_PATH = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")
_PATH_RULE = "must be segments of ASCII letters, digits, '_' and '-', separated by single '/'"
_LINE_BREAKING = frozenset({"Cc", "Zl", "Zp"})


def check_category(value: str, field: str = "category") -> str:
    """Return a category such as `project-context/loci`, at most 256 characters."""
    return _checked_path(value, field, MAX_CATEGORY_LENGTH)


def check_identifier(value: str, field: str) -> str:
    """Return an id that a caller chose (tenant, agent, user, session), at most 128 characters."""
    return _checked_path(value, field, MAX_IDENTIFIER_LENGTH)


def _checked_path(value: str, field: str, max_length: int) -> str:
    check_path_shape(value, field)
    _check_length(value, field, max_length)
    if _PATH.fullmatch(value) is None:
        raise errors.Invalid(field, _PATH_RULE)
    return value


def check_path_shape(value: str, field: str) -> None:
    """Raise Invalid for a path that is blank, absolute or has a `..` segment."""
    if not value.strip():
        raise errors.Invalid(field, "must not be blank")
    if value.startswith("/"):
        raise errors.Invalid(field, "must not be absolute (begin with '/')")
    if ".." in value.split("/"):
        raise errors.Invalid(field, "must not have a '..' segment")


def sanitize_category(text: str | None) -> str | None:
    """Make a category of what a model wrote; None when nothing usable remains."""
    if not isinstance(text, str):  # a model's JSON may hold anything
        return None
    if len(text) <= MAX_CATEGORY_LENGTH and _PATH.fullmatch(text):
        return text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    segments = [re.sub(r"[^A-Za-z0-9_-]+", "-", part).strip("-") for part in re.split(r"[/\\]", plain)]
    return _fitting("/".join(filter(None, segments))) or None


def _fitting(path: str) -> str:
    if len(path) <= MAX_CATEGORY_LENGTH:
        return path
    whole_segments = path[: MAX_CATEGORY_LENGTH + 1].rpartition("/")[0]
    return whole_segments or path[:MAX_CATEGORY_LENGTH]


def check_text(value: str, field: str, max_length: int | None = None, *, allow_blank: bool = False) -> str:
    """Return a text unchanged if every store can hold it.

    `max_length` is in characters (code points).
    """
    if not allow_blank and not value.strip():
        raise errors.Invalid(field, "must not be blank")
    if max_length is not None:
        _check_length(value, field, max_length)
    if "\x00" in value:
        raise errors.Invalid(field, "must not contain the NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise errors.Invalid(field, "must not contain lone surrogates") from None
    return value


def check_tags(values: Iterable[str], field: str = "tags") -> tuple[str, ...]:
    """Return the tags without repeats, in their order: at most 64 of at most 64 characters.

    A tag stands in lists that are read by line, so characters that break a line are refused.
    """
    tags = tuple(dict.fromkeys(values))
    if len(tags) > MAX_TAGS:
        raise errors.TooLarge(field, f"must be at most {MAX_TAGS} tags")
    for position, tag in enumerate(tags):
        _check_one_line(tag, f"{field}.{position}", MAX_TAG_LENGTH)
    return tags


def check_metadata(pairs: Mapping[str, str], field: str = "metadata") -> dict[str, str]:
    """Return the metadata: at most 64 pairs, keys to 64 and values to 1024 characters."""
    if len(pairs) > MAX_METADATA_PAIRS:
        raise errors.TooLarge(field, f"must be at most {MAX_METADATA_PAIRS} pairs")
    for position, (key, value) in enumerate(pairs.items()):
        # The key itself may be unprintable, so a bad one is named by its position.
        _check_one_line(key, f"{field}.{position}", MAX_METADATA_KEY_LENGTH)
        check_text(value, f"{field}.{key}", MAX_METADATA_VALUE_LENGTH, allow_blank=True)
    return dict(pairs)


def check_time(value: datetime, field: str) -> datetime:
    """Return a time in UTC; without a zone it is read as UTC.

    Years 2 to 9998 only: nearer the ends of the calendar a time can't be shown in every zone.
    """
    if not _FIRST_YEAR <= value.year <= _LAST_YEAR:
        raise errors.Invalid(field, f"must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def _check_one_line(value: str, field: str, max_length: int) -> None:
    check_text(value, field, max_length)
    if any(unicodedata.category(character) in _LINE_BREAKING for character in value):
        raise errors.Invalid(field, "must not contain control characters or line breaks")


def _check_length(value: str, field: str, max_length: int) -> None:
    if len(value) > max_length:
        raise errors.TooLarge(field, f"must be at most {max_length} characters")
