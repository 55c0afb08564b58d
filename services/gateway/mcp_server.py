"""The MCP server, by the official SDK. `services.gateway.mcp` imports it when the first request comes.

It is the SDK's low-level server, because the list of tools depends on the key of each request. Both eras of
the protocol are served: requests of 2026-07-28, and the ones after an `initialize` of before.
"""

import hashlib
import json
import logging
from dataclasses import replace
from typing import Any

import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from services.gateway import mcp_resources
from services.gateway.limits import MAX_BODY_BYTES
from services.gateway.tools import registry, schema
from services.gateway.tools.call import call_tool
from services.gateway.tools.instructions import INSTRUCTIONS, NAME, TITLE
from shared.platform.idempotency.idempotent import IdempotencyKey
from shared.platform.resources import Resources

Context = ServerRequestContext[Any, Request]
_LIST_FRESH_MS = 60_000
# At INFO it logs every start and stop, and its warnings may quote what a client has sent.
logging.getLogger("mcp").setLevel(logging.ERROR)


def new_session_manager() -> StreamableHTTPSessionManager:
    """Return what serves MCP over HTTP, without any state between requests."""
    return StreamableHTTPSessionManager(
        new_server(), json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
    )


def new_server() -> Server[Any]:
    """Return the server with its handlers."""
    return Server(
        NAME,
        title=TITLE,
        version="1",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_arguments_schema,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_read_resource=_read_resource,
    )


def _arguments_schema(name: str) -> dict[str, Any] | None:
    """Return the schema of a tool's arguments. Without this the SDK would list all tools at each call."""
    tool = registry.BY_NAME.get(name)
    return None if tool is None else schema.arguments_schema(tool.arguments)


async def _list_tools(
    context: Context, params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListToolsResult:
    del params
    state = _request_of(context).state
    tools = [
        mcp_types.Tool.model_validate(schema.in_style(tool, "mcp"))
        for tool in registry.list_for_mcp(state.identity, state.tool_set)
    ]
    return mcp_types.ListToolsResult(tools=tools, ttl_ms=_LIST_FRESH_MS, cache_scope="private")


async def _call_tool(context: Context, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
    request = _request_of(context)
    resources: Resources = request.app.state.resources
    name, arguments, state = params.name, params.arguments or {}, request.state
    with mcp_resources.errors_for_clients():
        registry.require_listed(state.identity, state.tool_set, name)
        key = _key_of_call(state.idempotency_key, name, arguments)
        answer = await call_tool(resources, state.identity, name, arguments, key)
    content: list[mcp_types.ContentBlock] = [mcp_types.TextContent(type="text", text=answer.content)]
    return mcp_types.CallToolResult(content=content, is_error=answer.is_error)


def _key_of_call(key: IdempotencyKey | None, name: str, arguments: dict[str, Any]) -> IdempotencyKey | None:
    """Return the idempotency key of a call, without what differs in a repetition, such as the id."""
    if key is None:
        return None
    digest = hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).digest()
    return replace(key, route=f"{key.route} {name}", digest=digest)


async def _list_resources(
    context: Context, params: mcp_types.PaginatedRequestParams | None
) -> mcp_types.ListResourcesResult:
    request = _request_of(context)
    cursor = None if params is None else params.cursor
    with mcp_resources.errors_for_clients():
        return await mcp_resources.list_skills(request.app.state.resources, request.state.identity, cursor)


async def _read_resource(
    context: Context, params: mcp_types.ReadResourceRequestParams
) -> mcp_types.ReadResourceResult:
    request = _request_of(context)
    with mcp_resources.errors_for_clients():
        return await mcp_resources.read_skill(request.app.state.resources, request.state.identity, params.uri)


def _request_of(context: Context) -> Request:
    if context.request is None:
        raise MCPError(mcp_types.INTERNAL_ERROR, "the request has no headers")
    return context.request
