"""Users. The only operation on a whole user is erasure."""

from fastapi import APIRouter

from services.gateway.dependencies import AdminCaller, ResourcesDep
from services.gateway.responses import JsonResponse
from shared.lifecycle import erase_user as erase_user_everywhere
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = APIRouter(prefix="/v1/users", tags=["users"])


@router.delete("/{user_id}")
async def erase_user(resources: ResourcesDep, caller: AdminCaller, user_id: str) -> JsonResponse:
    """Erase everything of a user, for all agents, and return the number of erased records of each kind."""
    rights.scope(caller, Area.USERS, Action.WRITE, None, user_id)
    return JsonResponse(await erase_user_everywhere.erase_user(resources, caller, user_id))
