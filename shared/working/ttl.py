"""Time left, as an agent reads it: `4h12m`, `4m32s`, `45s`."""

import math

_MINUTE = 60
_HOUR = 60 * _MINUTE


def left(seconds: float) -> str:
    """Write the time left, rounded up: what is live never reads `0s`, what is new reads `5m00s`."""
    whole = max(0, math.ceil(seconds))
    if whole >= _HOUR:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"
    if whole >= _MINUTE:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    return f"{whole}s"
