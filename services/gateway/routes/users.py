"""Users: the one thing to do with a user as a whole is to erase them."""

from fastapi import APIRouter

from services.gateway.dependencies import AdminCaller, ResourcesDep
from services.gateway.responses import JsonResponse
from shared.foundation.scope import Scope
from shared.lifecycle import erase_user as erase_user_everywhere

router = APIRouter(prefix="/v1/users", tags=["users"])


@router.delete("/{user_id}")
async def erase_user(resources: ResourcesDep, caller: AdminCaller, user_id: str) -> JsonResponse:
    """Erase everything of a user, of every agent, and say what it was."""
    asked: Scope = caller.scope(None, user_id)
    return JsonResponse(await erase_user_everywhere.erase_user(resources, caller, asked.user_id or user_id))
