"""Requests to the routes of the OpenAPI document."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FORM = {"content-type": "multipart/form-data; boundary=b"}


@dataclass(frozen=True)
class Call:
    """One request to the route of a case."""

    status: int
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def form(**parts: str) -> bytes:
    """Return the body of an upload. `file` is the content of a text file."""
    texts = [
        f'--b\r\nContent-Disposition: form-data; name="{name}"'
        f"{'; filename=mine.txt' if name == 'file' else ''}\r\n\r\n{text}\r\n"
        for name, text in parts.items()
    ]
    return ("".join(texts) + "--b--\r\n").encode()
