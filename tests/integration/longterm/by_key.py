"""Requests on memories by their keys."""

from http import HTTPStatus
from typing import Any

from tests.agent import Agent, Json

Scope = dict[str, str]
BY_KEY = "/v1/memories/by-key"
CREATED, CONFLICT, REFUSED = HTTPStatus.CREATED, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY
FAILED = HTTPStatus.PRECONDITION_FAILED


async def put(
    agent: Agent, scope: Scope, key: str, content: str, *, status: int = HTTPStatus.OK, **more: Any
) -> Json:
    headers = more.pop("headers", {})
    params = {"key": key, **scope} | more.pop("params", {})
    body = {"content": content, **more}
    return dict(await agent.request("PUT", BY_KEY, params=params, json=body, headers=headers, status=status))


async def get(agent: Agent, scope: Scope, key: str, *, status: int = HTTPStatus.OK, **params: str) -> Json:
    return dict(await agent.request("GET", BY_KEY, params={"key": key, **params, **scope}, status=status))


async def delete(agent: Agent, scope: Scope, key: str, **more: Any) -> Json:
    return dict(await agent.request("DELETE", BY_KEY, params={"key": key, **scope}, **more))
