"""All tools, in the order in which they are listed, and which of them a request may call.

A set of tools is a file of this package with its `TOOLS`, and a line here. Tools of the set `default` come
first; `all` is every tool but those that are there for agents which know it by another name (RockBot), and
those whose tokens are too many for it.
"""

from services.gateway.tools import (
    conversation_tools,
    document_tools,
    graph_tools,
    memory_tools,
    preference_tools,
    rockbot_tools,
    scratchpad_tools,
    skill_tools,
    working_tools,
)
from services.gateway.tools.invocation import SESSION_HEADER, Identity
from services.gateway.tools.tool import DEFAULT_SET, Needs, Tool
from shared.foundation import errors
from shared.platform.auth import rights

ALL_SET = "all"
_ALL_OF_MCP = {"working_get", "working_set", "skill_load", "graph_facts"}
"""What MCP lists in the set `all` besides the default tools. Clients of MCP show every tool to the model, so
a list of theirs has at most ten; the others are in sets that a client can ask for."""
_REGISTERED = (
    *memory_tools.TOOLS,
    *conversation_tools.TOOLS,
    *working_tools.TOOLS,
    *document_tools.TOOLS,
    *preference_tools.TOOLS,
    *scratchpad_tools.TOOLS,
    *skill_tools.TOOLS,
    *graph_tools.TOOLS,
    *rockbot_tools.TOOLS,
)
TOOLS = tuple(sorted(_REGISTERED, key=lambda tool: DEFAULT_SET not in tool.sets))
BY_NAME = {tool.name: tool for tool in TOOLS}
SETS = tuple(sorted({name for tool in TOOLS for name in tool.sets} | {ALL_SET}))
MCP_SETS = tuple(name for name in SETS if name != rockbot_tools.SET)
"""RockBot agents hold its fifteen tools themselves, and call them at `/v1/tools`."""


def find(name: str) -> Tool:
    """Return the tool with this name. Raise errors.NotFound if there is none."""
    if name not in BY_NAME:
        raise errors.NotFound(f"no tool '{name}'")
    return BY_NAME[name]


def list_tools(identity: Identity, tool_set: str) -> list[Tool]:
    """Return the tools of a set that a request may call, always in the same order.

    A key of a namespace may call tools of working memory alone, so these are its default. Raise
    errors.Invalid for an unknown set. Whether the session exists is not looked up: a list would reveal it.
    """
    if tool_set not in SETS:
        raise errors.Invalid("set", f"must be one of {', '.join(SETS)}")
    if tool_set == DEFAULT_SET and identity.caller.namespace is not None:
        tool_set = working_tools.SET
    tools = [tool for tool in TOOLS if tool_set in tool.sets or _is_in_all(tool, tool_set)]
    return [tool for tool in tools if _is_listed(tool, identity)]


def list_for_mcp(identity: Identity, tool_set: str) -> list[Tool]:
    """Return the tools of a set as `list_tools` does, at most ten. Raise errors.Invalid for another set."""
    if tool_set not in MCP_SETS:
        raise errors.Invalid("set", f"must be one of {', '.join(MCP_SETS)} over MCP")
    tools = list_tools(identity, tool_set)
    if tool_set != ALL_SET:
        return tools
    return [tool for tool in tools if DEFAULT_SET in tool.sets or tool.name in _ALL_OF_MCP]


def require_listed(identity: Identity, tool_set: str, name: str) -> None:
    """Raise errors.NotFound for a tool that MCP does not list for a request, whether there is one or not.

    A host that was given a set, or that asked its user about the listed tools, relies on it that there are no
    others.
    """
    if all(tool.name != name for tool in list_for_mcp(identity, tool_set)):
        raise errors.NotFound(f"no tool '{name}' in the list of this request")


def _is_in_all(tool: Tool, tool_set: str) -> bool:
    return tool_set == ALL_SET and tool.in_all and tool.sets != {rockbot_tools.SET}


def _is_listed(tool: Tool, identity: Identity) -> bool:
    try:
        require_callable(tool, identity)
        require_needs(tool, identity)
    except (errors.Forbidden, errors.Invalid):
        return False
    return True


def require_callable(tool: Tool, identity: Identity) -> None:
    """Raise errors.Forbidden unless the key has the right of a tool, and its bindings allow it somewhere."""
    identity.caller.require_right(tool.action.value)
    rights.require_area(identity.caller, tool.area, tool.action)


def require_needs(tool: Tool, identity: Identity) -> None:
    """Raise errors.Invalid unless a request has what a tool needs besides the key."""
    has_session = identity.session_id is not None
    is_met = {
        Needs.NOTHING: True,
        Needs.SESSION: has_session,
        Needs.NAMESPACE: has_session or identity.caller.namespace is not None,
    }
    if not is_met[tool.needs]:
        raise errors.Invalid(SESSION_HEADER, "must name the session that this tool works in")
