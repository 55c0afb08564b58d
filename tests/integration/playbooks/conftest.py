"""Requests on playbooks."""

from http import HTTPStatus
from typing import Any

from tests.agent import Agent, Json

QUERY = "Find me a flight to Lisbon on Friday."
PLAYBOOK: Json = {
    "flow_dact": "book_flight",
    "slots": {"destination": "Lisbon"},
    "tool_calls": [
        {"tool_id": "flights.search", "parameters": {"to": "LIS"}},
        {"tool_id": "flights.book", "parameters": {}},
    ],
    "outcome": "Completed",
    "user_query": QUERY,
}


async def record(agent: Agent, *, status: int = HTTPStatus.CREATED, **changes: Any) -> Json:
    """Record a playbook and return it."""
    return dict(await agent.request("POST", "/v1/playbooks", json=PLAYBOOK | changes, status=status))


async def find(agent: Agent, *, status: int = HTTPStatus.OK, **body: Any) -> Json:
    """Search playbooks and return the whole response."""
    return dict(await agent.request("POST", "/v1/playbooks/search", json=body, status=status))


async def found_ids(agent: Agent, **body: Any) -> list[str]:
    """Search playbooks and return their ids, best first."""
    return [playbook["id"] for playbook in (await find(agent, **body))["results"]]
