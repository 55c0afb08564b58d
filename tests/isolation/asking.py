"""Send the request of a case, and inspect its response."""

import re
from typing import Any
from urllib.parse import quote

import httpx

from tests.isolation.calls import Call
from tests.isolation.ids import Ids
from tests.isolation.sample_tenant import SECRET

# These differ between any two responses and reveal nothing: times, random ids, scores, durations, and
# versions of collections, which are times too.
_VARYING = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?"
    r"|\b[0-9a-f]{8}-[0-9a-f-]{27}\b"
    r"|\b[0-9a-f]{12}\b"
    r"|\b\d{16}\b"
    r"|(?<=\"digest\":\")[0-9a-f]{64}"
    r"|\d+\.\d+(?:e-\d+)?"
)


async def send(client: httpx.AsyncClient, route: str, call: Call) -> httpx.Response:
    """Send one call to a route such as `GET /v1/memories/{memory_id}`."""
    method, path = route.split(" ", maxsplit=1)[0], quoted_path(route, call)
    options: dict[str, Any] = {"params": dict(call.query), "headers": dict(call.headers)}
    if call.content is not None:
        options["content"] = call.content
    elif call.body is not None:
        options["json"] = call.body
    return await client.request(method, path, **options)


def quoted_path(route: str, call: Call) -> str:
    """Return the path of a call to a route."""
    path = route.split(" ")[1]
    for name, value in call.path.items():
        path = path.replace(f"{{{name}}}", quote(value))
    return path


def comparable_text(response: httpx.Response, ids: Ids) -> str:
    """Return a response without the parts that always vary and without the ids of its request."""
    if response.headers["content-type"].startswith("text/plain"):
        return str(response.status_code)  # metrics count the requests of all tenants
    return f"{response.status_code} {_VARYING.sub('…', ids.masked(response.text))}"


def contains_secret(response: httpx.Response) -> bool:
    """Return whether the secret is anywhere in a response or its headers, in lower or upper case."""
    lines = [response.text, *(f"{name}: {value}" for name, value in response.headers.items())]
    return SECRET in "\n".join(lines).lower()
