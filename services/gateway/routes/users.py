"""Users: the one thing to do with a user as a whole is to erase them."""

from fastapi import APIRouter

from services.gateway.answer import Json
from services.gateway.dependencies import Admin, Opened
from shared import erasure
from shared.scope import Scope

router = APIRouter(prefix="/v1/users", tags=["users"])


@router.delete("/{user_id}")
async def erase_user(opened: Opened, caller: Admin, user_id: str) -> Json:
    """Erase everything of a user, of every agent, and say what it was."""
    asked: Scope = caller.scope(None, user_id)
    return Json(await erasure.erase_user(opened, caller, asked.user_id or user_id))
