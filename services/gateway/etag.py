"""Versions as entity tags (RFC 9110, 8.8 and 13.1): `"1717171717171717"`.

A condition is the set of versions that may be there; `shared.conversation.state.protocol` says which numbers
stand for "anything" and "nothing".
"""

import re
from typing import Annotated

from fastapi import Header

from shared.conversation.state.protocol import ABSENT, EXISTS
from shared.foundation import errors

_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS = re.compile(rf"\s*{_TAG}(?:\s*,\s*{_TAG})*\s*")
_VERSION = re.compile(r'(?<!W/)"([0-9]{1,18})"')
_RULE = 'must be entity tags such as "1717171717171717", or *'

IfMatch = Annotated[
    str | None, Header(description="Write only if this is still the version; else the answer is a 409.")
]
IfNoneMatch = Annotated[str | None, Header(description="`*` writes only what is not there yet.")]


def to_etag(version: int) -> str:
    """Return the entity tag of a version."""
    return f'"{version}"'


def expected_versions(if_match: str | None, if_none_match: str | None) -> frozenset[int] | None:
    """Return the versions that a writer's headers allow to be there, None for whatever is there."""
    if if_none_match is not None:
        if if_none_match.strip() != "*" or if_match is not None:
            raise errors.Invalid("If-None-Match", "of a write must be * and stand alone")
        return frozenset({ABSENT})
    if if_match is None:
        return None
    return frozenset({EXISTS}) if if_match.strip() == "*" else _versions(if_match, "If-Match")


def is_current(if_none_match: str | None, version: int) -> bool:
    """Tell whether a reader's header says that it has this version."""
    if if_none_match is None:
        return False
    # A reader may compare weakly.
    told = if_none_match.replace("W/", "")
    return told.strip() == "*" or version in _versions(told, "If-None-Match")


def _versions(told: str, header: str) -> frozenset[int]:
    """Return the versions in a list of tags; of a tag that we never gave there is none."""
    if _TAGS.fullmatch(told) is None:
        raise errors.Invalid(header, _RULE)
    return frozenset(map(int, _VERSION.findall(told))) - {ABSENT}
