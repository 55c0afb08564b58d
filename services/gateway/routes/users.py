"""Users, and the receipts of erasures. The only change of a whole user is erasure."""

from typing import Annotated

from fastapi import Query

from services.gateway import responses
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import AdminCaller, Cursor, Limit, ReadCaller, ResourcesDep
from services.gateway.response_models import ErasureReceipt
from services.gateway.responses import JsonResponse
from services.gateway.subject_models import KnownSubjectPage, page_of_subjects
from shared.foundation import validation
from shared.foundation.scope import MAX_ID_LENGTH
from shared.lifecycle import erasure, subjects

router = authenticated_router(prefix="/v1", tags=["users"])


@router.get("/users", response_model=KnownSubjectPage)
async def list_users(
    resources: ResourcesDep,
    caller: ReadCaller,
    agent_id: Annotated[str | None, Query(description="List the users of this agent.")] = None,
    prefix: Annotated[str, Query(description="How the ids begin.", examples=["ad"])] = "",
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List the users whom something is stored of, by id in the order of their characters."""
    validation.check_text(prefix, "prefix", MAX_ID_LENGTH, allow_blank=True)
    start = responses.decode_name_cursor(cursor) or ""
    users = await subjects.list_users(resources, caller, agent_id, prefix, start, limit + 1)
    return page_of_subjects(users, limit)


@router.delete("/users/{user_id:path}", response_model=ErasureReceipt)
async def erase_user(resources: ResourcesDep, caller: AdminCaller, user_id: str) -> JsonResponse:
    """Erase everything of a user, for all agents, and return the receipt.

    It counts the erased records of each kind and says which databases are done. A repeated request
    returns the last receipt. The status is 202 if there is so much that the rows are deleted later.
    """
    return responses.receipt_response(await erasure.erase_user(resources, caller, user_id))


@router.get("/erasures/{erasure_id}", response_model=ErasureReceipt)
async def get_erasure(resources: ResourcesDep, caller: ReadCaller, erasure_id: str) -> JsonResponse:
    """Read the receipt of an erasure as it is now. It names nobody.

    That of a user or an agent needs the right `admin`.
    """
    return JsonResponse(await erasure.get_receipt(resources, caller, erasure_id))
