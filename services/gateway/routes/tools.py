"""Tools for language models: their schemas, and calls of them."""

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict

from services.gateway.api_model import ApiModel, BatchApiModel, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import IdempotencyKeyDep, ResourcesDep
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from services.gateway.tool_identity import IDENTIFIED, IdentityDep, session_key
from services.gateway.tools import registry, schema
from services.gateway.tools.call import call_tool as call
from services.gateway.tools.schema import DEFAULT_STYLE
from services.gateway.tools.tool import DEFAULT_SET

router = authenticated_router(prefix="/v1/tools", tags=["tools"], dependencies=[IDENTIFIED])
ToolName = Annotated[str, Path(description="The name of a tool.", examples=["memory_search"])]


class ToolSchema(BaseModel):
    """A tool in the form that the model provider of the style reads. It can be sent to a model as it is."""

    model_config = ConfigDict(extra="allow")

    name: str | None = None


class ToolArgumentsBody(BatchApiModel):
    """The arguments of a call, as the model wrote them. A null is an argument that is not given.

    What no database can store in them is an error of the model, and answered as such.
    """

    model_config = example({"arguments": {"query": "how does Ada like to travel?"}})

    arguments: dict[str, Any] = {}


class ToolAnswer(ApiModel):
    """What the model is to read. With `is_error` it says what went wrong, and what to do next."""

    content: str
    is_error: bool


@router.get("", response_model=Page[ToolSchema])
async def list_tools(
    identity: IdentityDep,
    set: Annotated[str, Query(description="The set of tools, such as `memory` or `all`.")] = DEFAULT_SET,  # noqa: A002
    style: Annotated[
        str, Query(description="`openai`, `openai-responses`, `anthropic` or `mcp`.")
    ] = DEFAULT_STYLE,
) -> JsonResponse:
    """List the schemas of the tools that the key may call, always in the same order.

    Tools that work in a session are listed if the header Loci-Session names one.
    """
    tools = (registry.list_for_mcp if style == "mcp" else registry.list_tools)(identity, set)
    results = [schema.in_style(tool, style) for tool in tools]
    return JsonResponse({"results": results, "next_cursor": None})


@router.post("/{name}", response_model=ToolAnswer)
async def call_tool(
    resources: ResourcesDep,
    identity: IdentityDep,
    name: ToolName,
    body: ToolArgumentsBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Call a tool.

    The headers Loci-Agent, Loci-User and Loci-Session choose on whose behalf, within the rights of the key.
    An error that the model can react to is an answer with `is_error`.
    """
    key = session_key(idempotency_key, identity)
    answer = await call(resources, identity, name, body.arguments, key)
    return JsonResponse(answer._asdict())
