"""The business context of the tenant: `agent.md`, which people write and promotions add lines to."""

from datetime import datetime
from typing import Any

from starlette.responses import Response

from services.gateway import etag
from services.gateway.api_model import ApiModel, RequestedTrust, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import ReadCaller, ResourcesDep, WriteCaller
from services.gateway.etag import IfMatch, IfNoneMatch, KnownVersion
from shared.foundation.origin import Origin
from shared.memory.business_context import read, write

router = authenticated_router(prefix="/v1/business-context", tags=["business context"])


class BusinessContextBody(ApiModel):
    """The whole text, as Markdown."""

    model_config = example({"content": "# Inn GmbH\n\n- The office in Kiel opens at nine."})

    content: str
    trust: RequestedTrust = None


class ProvenanceResponse(ApiModel):
    """Where a promoted line comes from; `line` is its number in the text, from 1."""

    line: int
    agent_id: str
    user_id: str | None
    session_id: str | None
    snippet_id: str
    reason: str | None
    created_at: datetime
    origin: Origin


class BusinessContextResponse(ApiModel):
    """The text, its version, which is its entity tag, and the origin of its least trusted part.

    Only unbound keys are shown the provenance.
    """

    content: str
    version: int
    origin: Origin | None
    provenance: list[ProvenanceResponse]


@router.get("", response_model=BusinessContextResponse)
async def get_business_context(
    resources: ResourcesDep, caller: ReadCaller, if_none_match: KnownVersion = None
) -> Response:
    """Read the text. It is empty until somebody writes it or something is promoted to it."""
    return etag.versioned_response(await read.read(resources, caller), if_none_match)


@router.put("", response_model=BusinessContextResponse)
async def put_business_context(
    resources: ResourcesDep,
    caller: WriteCaller,
    body: BusinessContextBody,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Replace the text, of at most 64 000 characters. Only an unbound key may.

    Promoted lines that it still has keep their provenance, also where they were reworded a little.
    """
    expected = etag.expected_versions(if_match, if_none_match)
    content: dict[str, Any] = await write.put(resources, caller, body.content, expected, body.trust)
    return etag.versioned_response(content)
