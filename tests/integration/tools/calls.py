"""Calls of tools by `/v1/tools`."""

from typing import Any, NamedTuple

import httpx


class Answer(NamedTuple):
    """What a model reads, and whether it is about an error."""

    content: str
    is_error: bool


async def call(
    client: httpx.AsyncClient, name: str, /, *, session: str | None = None, **arguments: Any
) -> Answer:
    """Call a tool."""
    headers = {} if session is None else {"loci-session": session}
    response = await client.post(f"/v1/tools/{name}", json={"arguments": arguments}, headers=headers)
    assert response.status_code == 200, response.text
    return Answer(**response.json())


async def good(
    client: httpx.AsyncClient, name: str, /, *, session: str | None = None, **arguments: Any
) -> str:
    """Call a tool that must succeed, and return what the model reads."""
    answer = await call(client, name, session=session, **arguments)
    assert not answer.is_error, answer
    return answer.content
