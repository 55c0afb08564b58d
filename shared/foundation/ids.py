"""Random ids of records."""

import secrets


def new_record_id() -> str:
    """Return twelve lower-case hexadecimal digits. Whoever stores it draws again if it is taken."""
    return secrets.token_hex(6)
