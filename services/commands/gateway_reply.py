"""Read what a running gateway answers to a command."""

from typing import Any

import httpx

from shared.foundation import errors

Json = dict[str, Any]


def require_success(response: httpx.Response) -> Json:
    """Return the JSON of a response. Raise errors.Conflict, with its text, for an error."""
    if response.is_error:
        raise errors.Conflict(f"the gateway answered {response.status_code}: {response.text[:300]}")
    content: Json = response.json()
    return content
