"""Versions as entity tags (RFC 9110, 8.8 and 13.1): `"1717171717171717"`.

A condition is the set of versions of which the stored one must be a member (`shared.foundation.versions`).
"""

import re
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Header
from starlette.responses import Response

from services.gateway.responses import JsonResponse
from shared.foundation import errors
from shared.foundation.versions import ABSENT, EXISTS

_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS = re.compile(rf"\s*{_TAG}(?:\s*,\s*{_TAG})*\s*")
_VERSION = re.compile(r'(?<!W/)"([0-9]{1,18})"')
_RULE = 'must be entity tags such as "1717171717171717", or *'

IfMatch = Annotated[
    str | None,
    Header(
        description="Write only if this is still the version; otherwise the response is a 412. "
        "A PUT over what is stored must have it, or If-None-Match; without both the response is a 428."
    ),
]
IfNoneMatch = Annotated[str | None, Header(description="`*` writes only if nothing is stored yet.")]
IfMatchOrAny = Annotated[
    str | None,
    Header(
        description="Write only if this is still the version, or `*` if there is one; "
        "otherwise the response is a 412."
    ),
]
KnownVersion = Annotated[
    str | None,
    Header(description="The version that the reader has: if it is current, the response is a 304."),
]


def to_etag(version: int) -> str:
    """Return the entity tag of a version."""
    return f'"{version}"'


def expected_versions(if_match: str | None, if_none_match: str | None) -> frozenset[int] | None:
    """Return the versions that may be stored for a write to go on, or None without a condition.

    Raise errors.Invalid for headers that are no entity tags or contradict each other.
    """
    if if_none_match is not None:
        if if_none_match.strip() != "*" or if_match is not None:
            raise errors.Invalid("If-None-Match", "of a write must be * and stand alone")
        return frozenset({ABSENT})
    if if_match is None:
        return None
    return frozenset({EXISTS}) if if_match.strip() == "*" else _parse_versions(if_match, "If-Match")


def _condition(if_match: IfMatchOrAny = None, if_none_match: IfNoneMatch = None) -> frozenset[int] | None:
    return expected_versions(if_match, if_none_match)


Condition = Annotated[frozenset[int] | None, Depends(_condition)]
"""The condition of a write that needs none: the versions that may be stored, or None."""


def versioned_response(content: dict[str, Any], known_version: str | None = None) -> Response:
    """Return a record with its `version` as an entity tag, or 304 if the reader has this version."""
    version = content["version"]
    headers = {"etag": to_etag(version)}
    if is_current(known_version, version):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return JsonResponse(content, headers=headers)


def is_current(if_none_match: str | None, version: int) -> bool:
    """Return whether a reader's If-None-Match header names this version."""
    if if_none_match is None:
        return False
    # RFC 9110 lets a read compare weakly, so weak tags count as strong ones.
    strong_tags = if_none_match.replace("W/", "")
    return strong_tags.strip() == "*" or version in _parse_versions(strong_tags, "If-None-Match")


def _parse_versions(tags: str, header: str) -> frozenset[int]:
    """Return the versions in a list of tags. Tags that are not a version number are left out."""
    if _TAGS.fullmatch(tags) is None:
        raise errors.Invalid(header, _RULE)
    return frozenset(map(int, _VERSION.findall(tags))) - {ABSENT}
