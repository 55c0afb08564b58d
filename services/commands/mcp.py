"""Serve the tools over MCP on standard input and output, for hosts that start a process.

The process holds nothing: it forwards each request to a running gateway, with the key that it was given. It
knows no address of a database, and a key that is revoked is refused by the next call. Standard output belongs
to the protocol; whatever else there is to say goes to standard error.
"""

import asyncio
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from services.gateway.tools.instructions import INSTRUCTIONS, NAME, TITLE
from shared.foundation import config, errors
from shared.foundation.optional_fields import without_none

_PATH, _MCP_PATH, _SECONDS = "/v1/tools", "/mcp", 60.0
_ACCEPT = {"accept": "application/json, text/event-stream"}
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the options choose within the rights of the key: agent, user and session, and the set of tools."""

    agent: str | None = None
    user: str | None = None
    session: str | None = None
    tool_set: str = "default"

    def headers(self) -> dict[str, str]:
        """Return the headers that say so."""
        return without_none(
            **{"Loci-Agent": self.agent, "Loci-User": self.user, "Loci-Session": self.session}
        )


@dataclass(frozen=True, slots=True)
class Forwarder:
    """Lists and calls tools by HTTP. Resources have no route but that of MCP, so that is asked for them."""

    client: httpx.AsyncClient
    tool_set: str

    async def list_tools(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        """Return the tools that the gateway lists for the key."""
        del context, params
        try:
            query = {"set": self.tool_set, "style": "mcp"}
            listed = _content_of(await self.client.get(_PATH, params=query))
        except (httpx.TransportError, errors.Conflict) as error:
            raise MCPError(mcp_types.INTERNAL_ERROR, self._explain(error)) from None
        tools = [mcp_types.Tool.model_validate(tool) for tool in listed["results"]]
        return mcp_types.ListToolsResult(tools=tools, cache_scope="private")

    async def call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        """Return the gateway's answer to a call. A refusal is an answer too, for the model to read."""
        del context
        body = {"arguments": params.arguments or {}}
        try:
            # As a whole segment: a name with `/` must not become another path.
            path = f"{_PATH}/{quote(params.name, safe='')}"
            answer = _content_of(await self.client.post(path, json=body))
        except (httpx.TransportError, errors.Conflict) as error:
            answer = {"content": self._explain(error), "is_error": True}
        content: list[mcp_types.ContentBlock] = [mcp_types.TextContent(type="text", text=answer["content"])]
        return mcp_types.CallToolResult(content=content, is_error=answer["is_error"])

    async def list_resources(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListResourcesResult:
        """Return the resources that the gateway lists for the key."""
        del context
        listed = await self._ask("resources/list", without_none(cursor=params.cursor if params else None))
        return mcp_types.ListResourcesResult.model_validate(listed)

    async def read_resource(
        self, context: Context, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        """Return a resource as the gateway has it."""
        del context
        return mcp_types.ReadResourceResult.model_validate(
            await self._ask("resources/read", {"uri": params.uri})
        )

    async def _ask(self, method: str, params: dict[str, str]) -> dict[str, Any]:
        """Return the result of a request of MCP at the gateway. Raise its error as it is."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            answer = _content_of(await self.client.post(_MCP_PATH, json=request, headers=_ACCEPT))
        except (httpx.TransportError, errors.Conflict) as error:
            raise MCPError(mcp_types.INTERNAL_ERROR, self._explain(error)) from None
        if "error" in answer:
            raise MCPError(answer["error"]["code"], answer["error"]["message"])
        result: dict[str, Any] = answer["result"]
        return result

    def _explain(self, error: Exception) -> str:
        if isinstance(error, errors.Conflict):
            return str(error)
        return f"The gateway at {self.client.base_url} does not answer: start it, for instance by `loci up`."


def serve(url: str | None, choice: Choice) -> None:
    """Serve until standard input ends. Raise errors.Misconfigured without a key."""
    settings = config.load()
    address = url or settings.url or f"http://127.0.0.1:{settings.port}"
    asyncio.run(_serve(address, _key(settings), choice))


async def _serve(address: str, key: str, choice: Choice) -> None:
    headers = {"Authorization": f"Bearer {key}", **choice.headers()}
    # As bytes: ids may have any letters, and the client would take a text for ASCII.
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    async with httpx.AsyncClient(base_url=address, headers=encoded, timeout=_SECONDS) as client:
        server = new_server(Forwarder(client, choice.tool_set))
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())


def new_server(forwarder: Forwarder) -> Server[Any]:
    """Return the server with its handlers."""
    return Server(
        NAME,
        title=TITLE,
        version="1",
        instructions=INSTRUCTIONS,
        on_list_tools=forwarder.list_tools,
        on_call_tool=forwarder.call_tool,
        on_list_resources=forwarder.list_resources,
        on_read_resource=forwarder.read_resource,
    )


def _key(settings: config.Settings) -> str:
    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    path = settings.data_dir / "dev-key"
    if not path.exists():
        raise errors.Misconfigured(
            "LOCI_API_KEY is not set, and there is no development key: `loci keys create`"
        )
    return path.read_text().strip()


def _content_of(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON of a response. Raise errors.Conflict, with what the problem says, for an error."""
    if response.is_success:
        content: dict[str, Any] = response.json()
        return content
    is_problem = response.headers.get("content-type", "").startswith("application/problem+json")
    detail = response.json()["detail"] if is_problem else response.text[:300]
    raise errors.Conflict(f"The gateway answered {response.status_code}: {detail}")
