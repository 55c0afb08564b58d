"""Directives: what models are told to do, as the tenant has it."""

from http import HTTPStatus

from fastapi import APIRouter

from services.gateway import responses
from services.gateway.api_model import ApiModel, example
from services.gateway.dependencies import AdminCaller, Cursor, Limit, ReadCaller, ResourcesDep
from services.gateway.responses import JsonResponse
from shared.platform.directives import files, resolve
from shared.platform.directives import queries as directive_queries
from shared.platform.directives.directive import Directive

router = APIRouter(prefix="/v1/directives", tags=["directives"])


class DirectiveBody(ApiModel):
    """The tenant's own text; a blank one goes back to the operator's or the built-in file."""

    model_config = example({"text": "# Rules for long-term memory\n\nKeep only what concerns customers."})

    text: str


@router.get("")
async def list_directives(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """List the directives in force, without their texts."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        found = [
            await resolve.resolve(connection, resources.settings, caller.tenant, name)
            for name in files.names()
        ]
    shown = [one.model_dump(mode="json", exclude={"text"}) for one in found]
    return JsonResponse({"results": shown, "next_cursor": None})


@router.get("/{name}", response_model=Directive)
async def get_directive(resources: ResourcesDep, caller: ReadCaller, name: str) -> JsonResponse:
    """Read a directive as it is in force, and where its text comes from."""
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        found = await resolve.resolve(connection, resources.settings, caller.tenant, name)
    return JsonResponse(found.model_dump(mode="json"))


@router.put("/{name}", response_model=Directive)
async def put_directive(
    resources: ResourcesDep, caller: AdminCaller, name: str, body: DirectiveBody
) -> JsonResponse:
    """Set the tenant's own text and return what is in force now; runs follow it from their next start."""
    kept = await resolve.replace(resources.settings, resources.postgres, caller, name, body.text)
    return JsonResponse(kept.model_dump(mode="json"), HTTPStatus.OK)


@router.get("/{name}/history")
async def list_versions(
    resources: ResourcesDep, caller: ReadCaller, name: str, limit: Limit = 20, cursor: Cursor = None
) -> JsonResponse:
    """List what the tenant has set, the newest first; a blank text is where it went back to the file."""
    files.check_name(name)
    after = responses.decode_cursor(cursor)
    async with resources.postgres.for_tenant(caller.tenant) as connection:
        rows = await directive_queries.page(connection, caller.tenant, name, limit + 1, after)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, str(row.version))
    )
