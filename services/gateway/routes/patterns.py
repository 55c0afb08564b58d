"""Industry patterns, and the tenant's consent that they need."""

from typing import Annotated

from fastapi import Query

from services.gateway import responses
from services.gateway.api_model import ApiModel, Flag, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import AdminCaller, Cursor, Limit, ReadCaller, ResourcesDep
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from shared.memory.patterns import consent, read
from shared.memory.patterns.pattern import Consent, Pattern

router = authenticated_router(prefix="/v1/patterns", tags=["patterns"])


class ConsentBody(ApiModel):
    """Whether the tenant shares its patterns, and so sees those of others."""

    model_config = example({"consent": True})

    consent: Flag


@router.get("", response_model=Page[Pattern])
async def list_patterns(
    resources: ResourcesDep,
    caller: ReadCaller,
    flow: Annotated[str | None, Query(description="Only patterns of this flow.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List which tools at least five consenting tenants call in a flow, in which order, and how it ends.

    `count` is the number of these tenants. The list is empty for a tenant that has not consented.
    """
    first = responses.decode_name_cursor(cursor)
    rows = await read.list_patterns(resources, caller, flow, limit + 1, first)
    return responses.id_page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: row.position
    )


@router.get("/consent", response_model=Consent)
async def get_consent(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """Read whether the tenant shares patterns."""
    state = await consent.read(resources, caller)
    return JsonResponse(state.model_dump(mode="json"))


@router.put("/consent", response_model=Consent)
async def put_consent(resources: ResourcesDep, caller: AdminCaller, body: ConsentBody) -> JsonResponse:
    """Consent to share patterns, or withdraw it: from then on the tenant is not counted and sees none.

    Only an unbound key with the right `admin` may. Shared are flows, ids of tools and outcomes, each only if
    four other tenants have the same; never a text, a parameter or a name.
    """
    state = await consent.change(resources, caller, is_given=body.consent)
    return JsonResponse(state.model_dump(mode="json"))
