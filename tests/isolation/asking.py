"""Ask a route, as a case says, and see what the answer tells."""

import re
from typing import Any
from urllib.parse import quote

import httpx

from tests.isolation.cases import Call
from tests.isolation.ids import Ids
from tests.isolation.planted import CANARY

# What differs between any two answers and tells nothing: moments, drawn ids, scores, seconds, and
# versions of collections, which are moments too.
_VARYING = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?"
    r"|\b[0-9a-f]{8}-[0-9a-f-]{27}\b"
    r"|\b[0-9a-f]{12}\b"
    r"|\b\d{16}\b"
    r"|\d+\.\d+(?:e-\d+)?"
)


async def ask(client: httpx.AsyncClient, route: str, call: Call) -> httpx.Response:
    """Send one call to a route such as `GET /v1/memories/{memory_id}`."""
    method, template = route.split(" ")
    path = template
    for name, value in call.path.items():
        path = path.replace(f"{{{name}}}", quote(value))
    sent: dict[str, Any] = {"params": dict(call.query), "headers": dict(call.headers)}
    if call.content is not None:
        sent["content"] = call.content
    elif call.body is not None:
        sent["json"] = call.body
    return await client.request(method, path, **sent)


def told(answer: httpx.Response, ids: Ids) -> str:
    """Return an answer without what always varies and without the ids that were asked for."""
    if answer.headers["content-type"].startswith("text/plain"):
        return str(answer.status_code)  # metrics count everybody's requests
    return f"{answer.status_code} {_VARYING.sub('…', ids.masked(answer.text))}"


def betrays(answer: httpx.Response) -> bool:
    """Tell whether the canary stands anywhere in an answer, in whatever case."""
    whole = [answer.text, *(f"{name}: {value}" for name, value in answer.headers.items())]
    return CANARY in "\n".join(whole).lower()
