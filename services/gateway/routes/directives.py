"""Directives: what models are told to do, as the tenant has it."""

from http import HTTPStatus

from fastapi import APIRouter

from services.gateway import responses
from services.gateway.api_model import Body, example
from services.gateway.dependencies import Admin, Cursor, Limit, Opened, Reader
from services.gateway.responses import Json
from shared.platform.directives import files, resolve
from shared.platform.directives import queries as directive_queries
from shared.platform.directives.directive import Directive

router = APIRouter(prefix="/v1/directives", tags=["directives"])


class DirectiveBody(Body):
    """The tenant's own text; a blank one goes back to the operator's or the built-in file."""

    model_config = example({"text": "# Rules for long-term memory\n\nKeep only what concerns customers."})

    text: str


@router.get("")
async def list_directives(opened: Opened, caller: Reader) -> Json:
    """List the directives in force, without their texts."""
    async with opened.postgres.tenant(caller.tenant) as connection:
        found = [
            await resolve.current(connection, opened.settings, caller.tenant, name) for name in files.names()
        ]
    shown = [one.model_dump(mode="json", exclude={"text"}) for one in found]
    return Json({"results": shown, "next_cursor": None})


@router.get("/{name}", response_model=Directive)
async def get_directive(opened: Opened, caller: Reader, name: str) -> Json:
    """Read a directive as it is in force, and where its text comes from."""
    async with opened.postgres.tenant(caller.tenant) as connection:
        found = await resolve.current(connection, opened.settings, caller.tenant, name)
    return Json(found.model_dump(mode="json"))


@router.put("/{name}", response_model=Directive)
async def put_directive(opened: Opened, caller: Admin, name: str, body: DirectiveBody) -> Json:
    """Set the tenant's own text and return what is in force now; runs follow it from their next start."""
    kept = await resolve.replace(opened.settings, opened.postgres, caller, name, body.text)
    return Json(kept.model_dump(mode="json"), HTTPStatus.OK)


@router.get("/{name}/history")
async def list_versions(
    opened: Opened, caller: Reader, name: str, limit: Limit = 20, cursor: Cursor = None
) -> Json:
    """List what the tenant has set, the newest first; a blank text is where it went back to the file."""
    files.check_name(name)
    after = responses.place_of(cursor)
    async with opened.postgres.tenant(caller.tenant) as connection:
        rows = await directive_queries.page(connection, caller.tenant, name, limit + 1, after)
    return responses.page(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, str(row.version))
    )
