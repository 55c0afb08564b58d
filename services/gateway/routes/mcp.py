"""The endpoint of MCP. It is no part of the OpenAPI document: its requests are those of another protocol."""

from typing import Annotated

from fastapi import Query, Request

from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import ResourcesDep, StreamKeyDep
from services.gateway.mcp import McpResponse, require_allowed_host
from services.gateway.tool_identity import IDENTIFIED, IdentityDep, session_key
from services.gateway.tools import registry
from services.gateway.tools.tool import DEFAULT_SET

router = authenticated_router(tags=["tools"], dependencies=[IDENTIFIED], include_in_schema=False)


@router.post("/mcp")
async def serve_mcp(
    request: Request,
    resources: ResourcesDep,
    identity: IdentityDep,
    idempotency_key: StreamKeyDep,
    set: Annotated[str, Query(description="The set of tools.")] = DEFAULT_SET,  # noqa: A002
) -> McpResponse:
    """Answer a request of MCP. Only POST is served: without sessions there is nothing to listen to."""
    require_allowed_host(request, resources.settings.mcp_host_list)
    registry.list_for_mcp(identity, set)  # refuses an unknown set
    request.state.tool_set = set
    request.state.idempotency_key = session_key(idempotency_key, identity)
    return McpResponse()
