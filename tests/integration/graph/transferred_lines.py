"""Requests that export and import the graph."""

import json
from typing import Any

from tests.agent import Agent
from tests.integration.graph.conftest import URL

TYPE = {"content-type": "application/x-ndjson"}


async def export(agent: Agent, path: str = f"{URL}/export", **query: str) -> list[dict[str, Any]]:
    response = await agent.client.get(path, params=query)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


async def import_lines(
    agent: Agent, lines: list[dict[str, Any]], path: str = f"{URL}/import", **query: str
) -> Any:
    content = "\n".join(map(json.dumps, lines)).encode()
    return await agent.request("POST", path, content=content, params=query, headers=TYPE)
