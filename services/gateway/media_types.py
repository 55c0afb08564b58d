"""Refuse bodies that are sent as something other than what a route reads: JSON, lines or an archive.

The framework passes such a body on as bytes, of which the rules of the fields would say nothing helpful.
"""

from email.message import Message

from fastapi import Request
from fastapi.routing import APIRoute

from shared.foundation import errors

_TYPE = "Content-Type"
_JSON = "application/json"


async def require_json(request: Request) -> None:
    """Raise errors.WrongMediaType for a body that is not sent as JSON, if the route reads JSON."""
    route: APIRoute = request.scope["route"]
    content_type = request.headers.get(_TYPE, "")
    is_json = content_type == _JSON or _is_json(content_type)
    if route.body_field is not None and not is_json and await request.body():
        raise errors.WrongMediaType(_TYPE, "must be application/json")


async def require_lines(request: Request) -> None:
    """Raise errors.WrongMediaType for lines that are sent as a form.

    Clients send lines under every other type, so none of them is refused.
    """
    if _parse(request.headers.get(_TYPE, "")).get_content_maintype() == "multipart":
        raise errors.WrongMediaType(_TYPE, "must be application/x-ndjson: the body is the lines, and no form")


def require_zip(request: Request) -> None:
    """Raise errors.WrongMediaType for an archive that is sent as a form or as JSON."""
    content_type = _parse(request.headers.get(_TYPE, ""))
    if content_type.get_content_maintype() == "multipart" or _is_json(request.headers.get(_TYPE, "")):
        raise errors.WrongMediaType(_TYPE, "must be application/zip: the body is the archive, and no form")


def _is_json(content_type: str) -> bool:
    """Return what the framework decides by: whether it reads a body of this type as JSON."""
    message = _parse(content_type)
    subtype = message.get_content_subtype()
    return message.get_content_maintype() == "application" and (
        subtype == "json" or subtype.endswith("+json")
    )


def _parse(content_type: str) -> Message:
    message = Message()
    message[_TYPE] = content_type
    return message
