"""What models read about each tool, in every style."""

from typing import Any

import jsonschema
import pytest

from services.gateway.api_model import parse
from services.gateway.tools import registry, schema
from services.gateway.tools.tool import Tool
from shared.foundation import errors
from shared.platform.auth.rights import Action

each_tool = pytest.mark.parametrize("tool", registry.TOOLS, ids=lambda tool: tool.name)
_OF_IDENTITY = {"agent_id", "agent", "user_id", "user", "tenant", "session_id", "session", "api_key"}
# What OpenAI accepts in a strict schema, of what these have.
_STRICT_KEYWORDS = {"type", "description", "enum", "items"}


def parameters(tool: Tool, style: str) -> dict[str, Any]:
    """Return the schema of the arguments in a style."""
    shown = schema.in_style(tool, style)
    shown = shown.get("function", shown)
    key = next(name for name in ("parameters", "input_schema", "inputSchema") if name in shown)
    found: dict[str, Any] = shown[key]
    return found


@each_tool
@pytest.mark.parametrize("style", ["openai", "openai-responses", "anthropic", "mcp"])
def test_the_arguments_are_a_json_schema_that_takes_no_others(tool: Tool, style: str) -> None:
    arguments = parameters(tool, style)
    jsonschema.Draft202012Validator.check_schema(arguments)
    assert arguments["type"] == "object"
    assert arguments["additionalProperties"] is False
    assert "anyOf" not in str(arguments)
    assert "title" not in str(arguments)


@each_tool
@pytest.mark.parametrize("style", ["openai", "openai-responses"])
def test_a_strict_schema_requires_every_property_and_lets_optional_ones_be_null(
    tool: Tool, style: str
) -> None:
    shown = schema.in_style(tool, style)
    assert shown["type"] == "function"
    assert shown.get("function", shown)["strict"] is True
    strict, plain = parameters(tool, style), parameters(tool, "anthropic")
    assert strict["required"] == list(strict["properties"])
    for name, value in strict["properties"].items():
        assert value.keys() <= _STRICT_KEYWORDS
        is_nullable = isinstance(value["type"], list) and "null" in value["type"]
        assert is_nullable == (name not in plain.get("required", ()))


@each_tool
def test_no_argument_names_on_whose_behalf_a_tool_acts(tool: Tool) -> None:
    assert not _OF_IDENTITY & set(parameters(tool, "mcp")["properties"])


@each_tool
def test_a_tool_says_when_to_use_it_and_what_a_host_may_expect(tool: Tool) -> None:
    assert tool.description.endswith(".")
    assert len(tool.description) <= 200
    hints = schema.in_style(tool, "mcp")["annotations"]
    assert hints["readOnlyHint"] is (tool.action is Action.READ)
    assert hints["openWorldHint"] is False
    assert hints["readOnlyHint"] or {"destructiveHint", "idempotentHint"} <= hints.keys()


def test_nothing_that_belongs_to_an_operator_is_a_tool() -> None:
    words = {word for name in registry.BY_NAME for word in name.split("_")}
    assert not words & {
        "dream",
        "dreams",
        "key",
        "keys",
        "budget",
        "budgets",
        "erase",
        "erasure",
        "directive",
    }


def test_forgetting_is_declared_destructive_and_adding_is_not() -> None:
    hints = {tool.name: schema.in_style(tool, "mcp")["annotations"] for tool in registry.TOOLS}
    assert hints["memory_forget"]["destructiveHint"] is True
    assert hints["memory_add"]["destructiveHint"] is False
    assert hints["memory_add"]["idempotentHint"] is False
    assert hints["working_set"]["idempotentHint"] is True


def test_an_unknown_style_is_refused_by_name() -> None:
    with pytest.raises(errors.Invalid, match="openai-responses"):
        schema.in_style(registry.TOOLS[0], "gemini")


def test_a_number_that_a_model_wrote_as_text_is_taken() -> None:
    arguments = parse(registry.find("memory_search").arguments, {"query": "x", "limit": "3"})
    assert arguments.model_dump()["limit"] == 3


def test_tags_in_one_text_are_several() -> None:
    arguments = parse(registry.find("save_memory").arguments, {"content": "x", "tags": "a, b,, c "})
    assert arguments.model_dump()["tags"] == ["a", "b", "c"]
