"""Directives: the instructions that models get, which a tenant can replace."""

from http import HTTPStatus

from services.gateway import responses
from services.gateway.api_model import ApiModel, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import AdminCaller, Cursor, Limit, ReadCaller, ResourcesDep
from services.gateway.dream_response_models import DirectiveSummary
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from shared.platform.directives import read, resolve
from shared.platform.directives.directive import Directive, DirectiveVersion

router = authenticated_router(prefix="/v1/directives", tags=["directives"])


class DirectiveBody(ApiModel):
    """The tenant's own text. A blank one restores the operator's file or the built-in one."""

    model_config = example({"text": "# Rules for long-term memory\n\nKeep only what concerns customers."})

    text: str


@router.get("", response_model=Page[DirectiveSummary])
async def list_directives(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """List the effective directives, without their texts."""
    directives = await read.list_directives(resources, caller)
    results = [directive.model_dump(mode="json", exclude={"text"}) for directive in directives]
    return JsonResponse({"results": results, "next_cursor": None})


@router.get("/{name}", response_model=Directive)
async def get_directive(resources: ResourcesDep, caller: ReadCaller, name: str) -> JsonResponse:
    """Read the effective text of a directive and where it comes from."""
    directive = await read.read_directive(resources, caller, name)
    return JsonResponse(directive.model_dump(mode="json"))


@router.put("/{name}", response_model=Directive)
async def put_directive(
    resources: ResourcesDep, caller: AdminCaller, name: str, body: DirectiveBody
) -> JsonResponse:
    """Set the tenant's own text and return the effective directive. It applies to runs that start later."""
    directive = await resolve.replace(resources, caller, name, body.text)
    return JsonResponse(directive.model_dump(mode="json"), HTTPStatus.OK)


@router.get("/{name}/history", response_model=Page[DirectiveVersion])
async def list_versions(
    resources: ResourcesDep, caller: ReadCaller, name: str, limit: Limit = 20, cursor: Cursor = None
) -> JsonResponse:
    """List the versions that the tenant has set, newest first. A blank text restored the file."""
    after = responses.decode_cursor(cursor)
    rows = await read.list_versions(resources, caller, name, limit + 1, after)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, str(row.version))
    )
