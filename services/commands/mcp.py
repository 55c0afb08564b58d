"""Serve the tools over MCP on standard input and output, for hosts that start a process.

The process holds nothing: it forwards each request to a running gateway, with the key that it was given. It
knows no address of a database, and a key that is revoked is refused by the next call. Standard output belongs
to the protocol; whatever else there is to say goes to standard error.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from services.commands.mcp_input import StandardInput
from services.gateway.tools.instructions import INSTRUCTIONS, NAME, TITLE
from shared.foundation import config, errors
from shared.foundation.optional_fields import without_none
from shared.foundation.scope import check_id

_PATH, _MCP_PATH, _SECONDS = "/v1/tools", "/mcp", 60.0
_JSON = {"content-type": "application/json"}
_JSON_RPC = _JSON | {"accept": "application/json, text/event-stream"}
_FAILURES = (httpx.RequestError, errors.LociError)
_MAX_NAME_CHARS = 200
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """What the options choose within the rights of the key: agent, user and session, and the set of tools.

    Raise errors.Invalid for an agent, a user or a session that is no id.
    """

    agent: str | None = None
    user: str | None = None
    session: str | None = None
    tool_set: str = "default"

    def __post_init__(self) -> None:
        for option, value in without_none(agent=self.agent, user=self.user, session=self.session).items():
            check_id(f"--{option}", value)

    def headers(self) -> dict[str, str]:
        """Return the headers that say so."""
        return without_none(
            **{"Loci-Agent": self.agent, "Loci-User": self.user, "Loci-Session": self.session}
        )


class Forwarder:
    """Lists and calls tools by HTTP. Resources have no route but that of MCP, so that is asked for them.

    Only tools of the last list are called: a host relies on it that there are no others.
    """

    def __init__(self, client: httpx.AsyncClient, tool_set: str) -> None:
        self._client = client
        self._tool_set = tool_set
        self._listed: frozenset[str] | None = None

    async def list_tools(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        """Return the tools that the gateway lists for the key."""
        del context, params
        try:
            tools = await self._list()
        except _FAILURES as error:
            raise MCPError(mcp_types.INTERNAL_ERROR, self._explain(error)) from None
        return mcp_types.ListToolsResult(tools=tools, cache_scope="private")

    async def _list(self) -> list[mcp_types.Tool]:
        query = {"set": self._tool_set, "style": "mcp"}
        content = _content_of(await self._client.get(_PATH, params=query), "results")
        tools = [mcp_types.Tool.model_validate(tool) for tool in content["results"]]
        self._listed = frozenset(tool.name for tool in tools)
        return tools

    async def call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        """Return the gateway's answer to a call. A refusal is an answer too, for the model to read."""
        del context
        try:
            await self._require_listed(params.name)
            path, body = f"{_PATH}/{quote(params.name, safe='')}", {"arguments": params.arguments or {}}
            response = await self._client.post(path, content=_encode(body), headers=_JSON)
            answer = _content_of(response, "content", "is_error")
        except _FAILURES as error:
            answer = {"content": self._explain(error), "is_error": True}
        content: list[mcp_types.ContentBlock] = [mcp_types.TextContent(type="text", text=answer["content"])]
        return mcp_types.CallToolResult(content=content, is_error=answer["is_error"])

    async def _require_listed(self, name: str) -> None:
        if self._listed is None:
            await self._list()
        if self._listed is None or name not in self._listed:
            raise MCPError(
                mcp_types.INVALID_PARAMS, f"no tool '{name[:_MAX_NAME_CHARS]}' in the list of this server"
            )

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
            response = await self._client.post(_MCP_PATH, content=_encode(request), headers=_JSON_RPC)
            answer = _content_of(response)
        except _FAILURES as error:
            raise MCPError(mcp_types.INTERNAL_ERROR, self._explain(error)) from None
        if "error" in answer:
            raise MCPError(answer["error"]["code"], answer["error"]["message"])
        result: dict[str, Any] = answer["result"]
        return result

    def _explain(self, error: Exception) -> str:
        if isinstance(error, errors.LociError):
            return str(error)
        return f"The gateway at {self._client.base_url} does not answer: start it, for instance by `loci up`."


def serve(url: str | None, choice: Choice) -> None:
    """Serve until standard input ends. Raise errors.Misconfigured without a key and an address."""
    asyncio.run(_serve(new_client(url, choice), choice.tool_set))


def new_client(url: str | None, choice: Choice) -> httpx.AsyncClient:
    """Return a client of the gateway. Raise errors.Misconfigured without a key and an address."""
    settings = config.load()
    address = url or settings.url or f"http://127.0.0.1:{settings.port}"
    base_url, key = _checked_address(address), _checked_key(_key(settings))
    headers = {"Authorization": f"Bearer {key}", **choice.headers()}
    # As bytes: ids may have any letters, and the client would take a text for ASCII.
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    return httpx.AsyncClient(base_url=base_url, headers=encoded, timeout=_SECONDS)


def _checked_address(address: str) -> str:
    try:
        parsed = httpx.URL(address)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise errors.Misconfigured("LOCI_URL or --url must be an address such as http://127.0.0.1:8700")
    return address


def _checked_key(key: str) -> str:
    """Return a key without the line break at its end. Raise errors.Misconfigured for what is no header."""
    key = key.strip()
    if not (key.isascii() and key.isprintable() and key and " " not in key):
        raise errors.Misconfigured("the key (LOCI_API_KEY) must be one word of printable ASCII characters")
    return key


def _key(settings: config.Settings) -> str:
    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    path = settings.data_dir / "dev-key"
    if not path.exists():
        raise errors.Misconfigured(
            "LOCI_API_KEY is not set, and there is no development key: `loci keys create`"
        )
    return path.read_text().strip()


async def _serve(gateway: httpx.AsyncClient, tool_set: str) -> None:
    async with gateway as client:
        server = new_server(Forwarder(client, tool_set))
        given: Any = StandardInput()
        async with stdio_server(given) as (reader, writer):
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


def _encode(body: dict[str, Any]) -> bytes:
    """Return JSON. Whether its numbers and its text can be stored is for the gateway to say, as over HTTP.

    Raise errors.Invalid for what is nested too deeply or has numbers of too many digits.
    """
    try:
        return json.dumps(body).encode()
    except (ValueError, RecursionError):
        raise errors.Invalid("arguments", "must be JSON of ordinary depth and numbers") from None


def _content_of(response: httpx.Response, *names: str) -> dict[str, Any]:
    """Return the JSON object of a response, which has these names.

    Raise errors.Conflict, with what the problem says, for an error, and for what is no response of a gateway.
    """
    try:
        content = response.json()
    except ValueError:
        content = None
    is_problem = response.headers.get("content-type", "").startswith("application/problem+json")
    if response.is_success and isinstance(content, dict) and content.keys() >= set(names):
        return content
    if response.is_success:
        raise errors.Conflict(f"What answers at {response.url.copy_with(query=None)} is no gateway of Loci.")
    has_detail = is_problem and isinstance(content, dict) and "detail" in content
    detail = content["detail"] if has_detail else response.text[:300]
    raise errors.Conflict(f"The gateway answered {response.status_code}: {detail}")
