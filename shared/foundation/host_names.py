"""The host in a `Host` or `Origin` header, read strictly.

A lenient reader of addresses takes what stands before an `@` for a user, or ends the host at a `/`: then what
it compares is not where the request went. So only the two forms are read that clients send.
"""

import re

_HOST = r"(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_HOST_HEADER = re.compile(_HOST)
_ORIGIN_HEADER = re.compile(rf"[A-Za-z][A-Za-z0-9+.-]*://{_HOST}")


def host_of(header: str) -> str | None:
    """Return the name in a `Host` header, without its port and in lower case, or None if it is none."""
    return _name_in(_HOST_HEADER, header)


def host_of_origin(header: str) -> str | None:
    """Return the name in an `Origin` header as `host_of` does; `null` has none."""
    return _name_in(_ORIGIN_HEADER, header)


def _name_in(pattern: re.Pattern[str], header: str) -> str | None:
    match = pattern.fullmatch(header)
    return None if match is None else match["name"].lower()
