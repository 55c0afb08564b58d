"""Which tools a request is shown, in which order, and what the list costs a model."""

import re
from dataclasses import replace

import mcp_types
import pytest

from services.gateway.tools import registry, schema
from services.gateway.tools.invocation import Identity
from services.gateway.tools.tool import DEFAULT_SET
from shared.foundation import errors
from shared.foundation.scope import Caller, Right

ALL_RIGHTS: frozenset[Right] = frozenset({"read", "write", "admin"})
KEY = Caller("k", "t", ALL_RIGHTS)
READER = replace(KEY, rights=frozenset[Right]({"read"}))
OF_NAMESPACE = replace(KEY, namespace="patrol/p")
IN_SESSION = Identity(KEY, "s")
READ_IN_DEFAULT = ["memory_search", "conversation_search"]


def names(identity: Identity, tool_set: str = DEFAULT_SET) -> list[str]:
    """Return the names of the tools that are listed."""
    return [tool.name for tool in registry.list_tools(identity, tool_set)]


def tokens(tool_set: str) -> float:
    """Return the tokens of a list at their longest: its bytes as MCP sends them, divided by four."""
    tools = [
        mcp_types.Tool.model_validate(schema.in_style(tool, "mcp"))
        for tool in registry.list_tools(IN_SESSION, tool_set)
    ]
    result = mcp_types.ListToolsResult(tools=tools, ttl_ms=60_000, cache_scope="private")
    return len(result.model_dump_json(by_alias=True, exclude_none=True).encode()) / 4


def test_the_default_list_takes_at_most_1500_tokens_and_all_tools_2500() -> None:
    assert tokens(DEFAULT_SET) <= 1500
    assert tokens(registry.ALL_SET) <= 2500


def test_mcp_lists_six_tools_by_default_and_at_most_ten() -> None:
    default = ["memory_search", "memory_add", "memory_update", "memory_forget"]
    default += ["conversation_search", "context_get"]
    for_mcp = {
        tool_set: [tool.name for tool in registry.list_for_mcp(IN_SESSION, tool_set)]
        for tool_set in registry.MCP_SETS
    }
    assert for_mcp[DEFAULT_SET] == names(IN_SESSION) == default
    rest = ["working_get", "working_set", "skill_load", "graph_facts"]
    assert sorted(for_mcp[registry.ALL_SET]) == sorted([*default, *rest])
    assert max(map(len, for_mcp.values())) == 10


@pytest.mark.parametrize("tool_set", registry.MCP_SETS)
def test_no_tool_of_a_list_for_mcp_points_to_one_that_is_not_in_it(tool_set: str) -> None:
    listed = registry.list_for_mcp(IN_SESSION, tool_set)
    names_of_list = {tool.name for tool in listed}
    for tool in listed:
        words = set(re.findall(r"\w+", f"{tool.description} {tool.if_missing} {tool.arguments.__doc__}"))
        assert words & registry.BY_NAME.keys() <= names_of_list, tool.name


@pytest.mark.parametrize("tool_set", ["rockbot", "everything", "", "DEFAULT"])
def test_a_set_that_mcp_does_not_have_is_refused_with_the_names_of_the_others(tool_set: str) -> None:
    with pytest.raises(errors.Invalid, match="all, default, documents, graph, memory"):
        registry.list_for_mcp(IN_SESSION, tool_set)


def test_over_mcp_a_tool_that_is_not_listed_is_unknown_whether_there_is_one_or_not() -> None:
    registry.require_listed(IN_SESSION, DEFAULT_SET, "context_get")
    for identity, tool_set, name in (
        (IN_SESSION, DEFAULT_SET, "working_get"),
        (IN_SESSION, registry.ALL_SET, "delete_memory"),
        (Identity(KEY), DEFAULT_SET, "context_get"),
        (Identity(READER), DEFAULT_SET, "memory_add"),
        (Identity(OF_NAMESPACE), registry.ALL_SET, "memory_search"),
        (IN_SESSION, registry.ALL_SET, "none"),
    ):
        with pytest.raises(errors.NotFound, match=f"no tool '{name}' in the list of this request"):
            registry.require_listed(identity, tool_set, name)


def test_every_tool_that_is_not_in_the_default_list_is_in_all() -> None:
    everything = names(IN_SESSION, registry.ALL_SET)
    assert everything[: len(names(IN_SESSION))] == names(IN_SESSION)
    only_in_rockbot = set(names(IN_SESSION, "rockbot")) - set(everything)
    assert set(registry.BY_NAME) == set(everything) | only_in_rockbot


def test_a_key_that_may_only_read_is_listed_no_tool_that_writes() -> None:
    assert names(Identity(READER)) == READ_IN_DEFAULT
    listed = registry.list_tools(Identity(READER, "s"), registry.ALL_SET)
    assert all(tool.effect.reads_only for tool in listed)


def test_a_key_of_a_namespace_is_listed_working_memory_alone() -> None:
    assert names(Identity(OF_NAMESPACE))[:2] == ["working_get", "working_set"]
    assert names(Identity(OF_NAMESPACE)) == names(Identity(OF_NAMESPACE), "working")
    assert set(names(Identity(OF_NAMESPACE), registry.ALL_SET)) == set(
        names(Identity(OF_NAMESPACE), "working")
    )


def test_what_works_in_a_session_is_listed_with_one_alone() -> None:
    in_session = set(names(IN_SESSION)) - set(names(Identity(KEY)))
    assert in_session == {"context_get"}
    in_working = set(names(IN_SESSION, "working")) - set(names(Identity(KEY), "working"))
    assert in_working >= {"working_set"}
    assert names(Identity(KEY), "scratchpad") == []
    assert names(IN_SESSION, "scratchpad") == ["scratchpad_write", "scratchpad_read"]


@pytest.mark.parametrize("tool_set", registry.SETS)
def test_fewer_rights_leave_tools_out_and_change_no_order(tool_set: str) -> None:
    everything = names(IN_SESSION, tool_set)
    identities = [Identity(KEY), Identity(READER, "s")]
    if tool_set != DEFAULT_SET:  # that of a namespace is another one
        identities.append(Identity(OF_NAMESPACE))
    for identity in identities:
        listed = names(identity, tool_set)
        assert listed == [name for name in everything if name in listed]


def test_an_unknown_set_is_refused_with_the_names_of_the_others() -> None:
    with pytest.raises(errors.Invalid, match="all, default, documents"):
        registry.list_tools(IN_SESSION, "everything")


def test_the_tools_of_rockbot_agents_have_their_names() -> None:
    assert {
        *("save_memory", "search_memory", "delete_memory", "list_memory_categories", "list_categories"),
        *("save_to_working_memory", "get_from_working_memory", "delete_from_working_memory"),
        *("list_working_memory", "search_working_memory", "search_business_context"),
    } <= set(names(IN_SESSION, "rockbot"))
