"""Requests on the knowledge graph."""

from http import HTTPStatus
from typing import Any

from tests.agent import Agent, Json

URL = "/v1/graph"


async def save_entity(agent: Agent, name: str, *, status: int = HTTPStatus.CREATED, **fields: Any) -> Json:
    """Save an entity and return it."""
    body = {"name": name, **fields}
    return dict(await agent.request("POST", f"{URL}/entities", json=body, status=status))


async def connect(
    agent: Agent,
    subject: str,
    predicate: str,
    object_: str,
    *,
    status: int = HTTPStatus.CREATED,
    **fields: Any,
) -> Json:
    """Save a triple between two entities and return it."""
    body = {"subject": subject, "predicate": predicate, "object": object_, **fields}
    return dict(await agent.request("POST", f"{URL}/triples", json=body, status=status))


async def matched(agent: Agent, text: str, **fields: Any) -> list[str]:
    """Return the names of the entities that a text is about, sorted."""
    answer = await agent.request("POST", f"{URL}/match", json={"text": text, **fields})
    return sorted(entity["name"] for entity in answer["results"])


async def lines(agent: Agent, *names: str, **fields: Any) -> list[str]:
    """Return the lines of what is connected with entities."""
    answer = await agent.request("POST", f"{URL}/traverse", json={"names": list(names), **fields})
    return [step["line"] for step in answer["results"]]


async def triples(agent: Agent, **query: Any) -> list[Json]:
    """List triples."""
    return list((await agent.request("GET", f"{URL}/triples", params=query))["results"])


async def entities(agent: Agent, **query: Any) -> list[Json]:
    """List entities."""
    return list((await agent.request("GET", f"{URL}/entities", params=query))["results"])
