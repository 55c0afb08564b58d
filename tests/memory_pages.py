"""Read the live memories of a tenant page by page, as a client does that wants them all."""

from typing import Any

import httpx

_PAGE_SIZE = 100


async def list_memories(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """Return all live memories that the client's key sees, newest first."""
    memories: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        parameters = {"limit": _PAGE_SIZE} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/v1/memories", params=parameters)).json()
        memories += page["results"]
        cursor = page["next_cursor"]
    return memories
