"""Check names and texts that callers send. All capabilities use these rules.

Each `check_*` function returns the value to store, or raises `errors.Invalid` (`TooLarge` for a size)
with the field and the broken rule. The message never repeats the value, because a refused value may
not even be encodable. Patterns are applied with `fullmatch`: `$` would accept a trailing newline.

Lone surrogates and NUL are refused everywhere. Postgres, JSON and Redis treat them differently, so a
value that one of them accepts would be lost in another. A category that a model writes is cleaned
instead of refused (`sanitize_category`), so that no memory is lost because of its category.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from shared.foundation import errors

MAX_CATEGORY_LENGTH = 256
MAX_IDENTIFIER_LENGTH = 128
MAX_TECHNICAL_ID_LENGTH = 64
MAX_TAGS = 64
MAX_TAG_LENGTH = 64
MAX_METADATA_PAIRS = 64
MAX_METADATA_KEY_LENGTH = 64
MAX_METADATA_VALUE_LENGTH = 1024
_FIRST_YEAR, _LAST_YEAR = 2, 9998

_PATH = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")
_PATH_RULE = "must be segments of ASCII letters, digits, '_' and '-', separated by single '/'"
_TECHNICAL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]*")
# Neither white space, nor a control character but NUL, nor one that Unicode tells a font to show nothing for
# (Default_Ignorable_Code_Point, interlinear annotations, and the empty pattern of Braille).
_VISIBLE = re.compile(
    "[^\\s\x01-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LINE_BREAKING = frozenset({"Cc", "Zl", "Zp"})


def check_category(value: str, field: str = "category") -> str:
    """Return a category such as `project-context/loci`: at most 256 characters."""
    return _check_path(value, field, MAX_CATEGORY_LENGTH)


def check_identifier(value: str, field: str) -> str:
    """Return an id that a caller chose (tenant, agent, user, session): at most 128 characters."""
    return _check_path(value, field, MAX_IDENTIFIER_LENGTH)


def check_technical_id(value: str, field: str) -> str:
    """Return the id of a flow or a tool, such as `book_flight` or `calendar.create`: at most 64 characters.

    It has no spaces, no letters beyond ASCII and no `@`, so that neither a sentence nor an address fits in.
    """
    _check_length(value, field, MAX_TECHNICAL_ID_LENGTH)
    if _TECHNICAL_ID.fullmatch(value) is None:
        rule = "must be ASCII letters, digits, '_', '.', ':', '/' and '-', and begin with a letter or digit"
        raise errors.Invalid(field, rule)
    return value


def _check_path(value: str, field: str, max_length: int) -> str:
    check_path_shape(value, field)
    _check_length(value, field, max_length)
    if _PATH.fullmatch(value) is None:
        raise errors.Invalid(field, _PATH_RULE)
    return value


def check_path_shape(value: str, field: str) -> None:
    """Raise errors.Invalid if a path is blank, is absolute or has a `..` segment."""
    if is_blank(value):
        raise errors.Invalid(field, "must not be blank")
    if value.startswith("/"):
        raise errors.Invalid(field, "must not be absolute (begin with '/')")
    if ".." in value.split("/"):
        raise errors.Invalid(field, "must not have a '..' segment")


def sanitize_category(text: str | None) -> str | None:
    """Turn what a model wrote into a valid category; return None if nothing usable remains."""
    if not isinstance(text, str):  # a model's JSON may hold anything
        return None
    if len(text) <= MAX_CATEGORY_LENGTH and _PATH.fullmatch(text):
        return text
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    segments = [re.sub(r"[^A-Za-z0-9_-]+", "-", part).strip("-") for part in re.split(r"[/\\]", ascii_text)]
    return _shorten_path("/".join(filter(None, segments))) or None


def _shorten_path(path: str) -> str:
    if len(path) <= MAX_CATEGORY_LENGTH:
        return path
    whole_segments = path[: MAX_CATEGORY_LENGTH + 1].rpartition("/")[0]
    return whole_segments or path[:MAX_CATEGORY_LENGTH]


def is_blank(text: str) -> bool:
    """Return whether a text has no character that anybody could see.

    Zero-width joiners and the like belong to texts in many scripts and are kept. Alone they say nothing.
    """
    return _VISIBLE.search(text) is None


def visible_characters(text: str) -> str:
    """Return a text without white space and without what nobody could see."""
    return "".join(_VISIBLE.findall(text))


def check_text(value: str, field: str, max_length: int | None = None, *, allow_blank: bool = False) -> str:
    """Return a text unchanged if every database can store it; `max_length` is in code points."""
    if not allow_blank and is_blank(value):
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


def check_single_line(value: str, field: str, max_length: int) -> str:
    """Return a text that is not blank and has no control characters and line breaks."""
    check_text(value, field, max_length)
    if any(unicodedata.category(character) in _LINE_BREAKING for character in value):
        raise errors.Invalid(field, "must not contain control characters or line breaks")
    return value


def check_tags(values: Iterable[str], field: str = "tags") -> tuple[str, ...]:
    """Return the tags in their order, without duplicates: at most 64 of at most 64 characters.

    Tags appear in lists that are read line by line, so characters that break a line are refused.
    """
    tags = tuple(dict.fromkeys(values))
    if len(tags) > MAX_TAGS:
        raise errors.TooLarge(field, f"must be at most {MAX_TAGS} tags")
    for position, tag in enumerate(tags):
        check_single_line(tag, f"{field}.{position}", MAX_TAG_LENGTH)
    return tags


def check_metadata(pairs: Mapping[str, str], field: str = "metadata") -> dict[str, str]:
    """Return the metadata: at most 64 pairs, keys of at most 64 and values of at most 1024 characters."""
    if len(pairs) > MAX_METADATA_PAIRS:
        raise errors.TooLarge(field, f"must be at most {MAX_METADATA_PAIRS} pairs")
    for position, (key, value) in enumerate(pairs.items()):
        # A bad key may be unprintable, so the error names its position.
        check_single_line(key, f"{field}.{position}", MAX_METADATA_KEY_LENGTH)
        check_text(value, f"{field}.{key}", MAX_METADATA_VALUE_LENGTH, allow_blank=True)
    return dict(pairs)


def check_json(value: Any, field: str, max_bytes: int) -> Any:
    """Return a value if JSON preserves it; overlong numbers and very deep nesting are not preserved."""
    try:
        encoded = orjson.dumps(value)
        is_preserved = orjson.loads(encoded) == value
    except (TypeError, ValueError):
        is_preserved, encoded = False, b""
    if not is_preserved:
        raise errors.Invalid(field, "must be JSON of ordinary depth, with finite numbers of 64 bits")
    if len(encoded) > max_bytes:
        raise errors.TooLarge(field, f"must be at most {max_bytes} bytes of JSON")
    return value


def check_time(value: datetime, field: str) -> datetime:
    """Return a time in UTC; a time without a zone is taken as UTC.

    Only the years 2 to 9998 are allowed: closer to the ends of the calendar, a time cannot be
    converted to every time zone.
    """
    if not _FIRST_YEAR <= value.year <= _LAST_YEAR:
        raise errors.Invalid(field, f"must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}")
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def check_future(value: datetime, field: str) -> datetime:
    """Return a time with a zone that has not come yet."""
    if value <= datetime.now(UTC):
        raise errors.Invalid(field, "must lie in the future")
    return value


def clamp_time(value: datetime) -> datetime:
    """Return a time in UTC, moved into the years that `check_time` allows: no stored time lies beyond."""
    if value.year > _LAST_YEAR:
        return datetime.max.replace(year=_LAST_YEAR, tzinfo=UTC)
    if value.year < _FIRST_YEAR:
        return datetime.min.replace(year=_FIRST_YEAR, tzinfo=UTC)
    return check_time(value, "")


def _check_length(value: str, field: str, max_length: int) -> None:
    if len(value) > max_length:
        raise errors.TooLarge(field, f"must be at most {max_length} characters")
