"""Create the random ids of records."""

import secrets


def new_record_id() -> str:
    """Return twelve random lower-case hexadecimal digits.

    Two of them can be equal, so the caller draws a new one if the id is already in use.
    """
    return secrets.token_hex(6)
