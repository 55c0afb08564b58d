"""Users, and the receipts of erasures. The only operation on a whole user is erasure."""

from fastapi import APIRouter

from services.gateway import responses
from services.gateway.dependencies import AdminCaller, ResourcesDep
from services.gateway.responses import JsonResponse
from shared.lifecycle import erasure

router = APIRouter(prefix="/v1", tags=["users"])


@router.delete("/users/{user_id:path}")
async def erase_user(resources: ResourcesDep, caller: AdminCaller, user_id: str) -> JsonResponse:
    """Erase everything of a user, for all agents, and return the receipt.

    It counts the erased records of each kind and says which databases are done. A repeated request
    returns the last receipt. The status is 202 if there is so much that the rows are deleted later.
    """
    return responses.receipt_response(await erasure.erase_user(resources, caller, user_id))


@router.get("/erasures/{erasure_id}")
async def get_erasure(resources: ResourcesDep, caller: AdminCaller, erasure_id: str) -> JsonResponse:
    """Read the receipt of an erasure as it is now. It names nobody."""
    return JsonResponse(await erasure.get_receipt(resources, caller, erasure_id))
