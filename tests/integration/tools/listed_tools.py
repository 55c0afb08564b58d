"""What clients of MCP send, list and read."""

import mcp_types
import orjson
from mcp.client import Client

LIST = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
ACCEPT = {"accept": "application/json, text/event-stream"}
WITHOUT_SESSION = [
    "memory_search",
    "memory_add",
    "memory_update",
    "memory_forget",
    "conversation_search",
]


def text_of(result: mcp_types.CallToolResult) -> str:
    """Return what a model reads."""
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


async def names(client: Client) -> list[str]:
    """Return the names of the listed tools."""
    return [tool.name for tool in (await client.list_tools()).tools]
