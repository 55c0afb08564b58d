"""Second thoughts about a memory: archive it, restore it, return to an earlier version, enrich it again."""

from http import HTTPStatus

from services.gateway import etag
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import ResourcesDep, WriteCaller
from services.gateway.etag import IfMatch
from services.gateway.memory_models import KeptMemoryBody, ReasonBody, RevertBody, check_reason
from services.gateway.memory_response import memory_response
from services.gateway.responses import JsonResponse
from services.gateway.waiting import WAITS
from shared.dreams.runs import restore as dream_restore
from shared.lifecycle import edit_memory
from shared.lifecycle import resolve_memory as lifecycle_resolve_memory
from shared.memory.longterm import archive, enrich_again
from shared.memory.longterm.memory import Memory

router = authenticated_router(prefix="/v1/memories/{memory_id}", tags=["memories"])
_NO_REASON = ReasonBody()


@router.post("/archive", response_model=Memory)
async def archive_memory(
    resources: ResourcesDep,
    caller: WriteCaller,
    memory_id: str,
    body: ReasonBody = _NO_REASON,
    if_match: IfMatch = None,
) -> JsonResponse:
    """Take a memory out of every search. Until it is purged it can be restored, by a caller alone."""
    expected = etag.expected_versions(if_match, None)
    return memory_response(
        await archive.archive(resources, caller, memory_id, check_reason(body.reason), expected)
    )


@router.post("/restore", response_model=Memory, dependencies=[WAITS])
async def restore_memory(
    resources: ResourcesDep,
    caller: WriteCaller,
    memory_id: str,
    body: ReasonBody = _NO_REASON,
    if_match: IfMatch = None,
) -> JsonResponse:
    """Make an archived memory live again, unless a live one has its text or its key now."""
    expected = etag.expected_versions(if_match, None)
    return memory_response(
        await dream_restore.restore(resources, caller, memory_id, check_reason(body.reason), expected)
    )


@router.post("/revert", response_model=Memory, dependencies=[WAITS])
async def revert_memory(
    resources: ResourcesDep, caller: WriteCaller, memory_id: str, body: RevertBody, if_match: IfMatch = None
) -> JsonResponse:
    """Give a memory the fields that it had in an earlier version, as its history tells them."""
    expected = etag.expected_versions(if_match, None)
    return memory_response(
        await edit_memory.revert(
            resources, caller, memory_id, body.version, check_reason(body.reason), expected
        )
    )


@router.post("/resolve", response_model=Memory)
async def resolve_memory(
    resources: ResourcesDep, caller: WriteCaller, memory_id: str, body: KeptMemoryBody
) -> JsonResponse:
    """Close a contested memory now, in favour of the rival that `keep` names, and return it.

    The response is a 409 if the two don't contest each other.
    """
    reason = check_reason(body.reason)
    return memory_response(
        await lifecycle_resolve_memory.resolve(resources, caller, memory_id, body.keep, reason)
    )


@router.post("/enrich", response_model=Memory, status_code=HTTPStatus.ACCEPTED)
async def enrich_memory(
    resources: ResourcesDep,
    caller: WriteCaller,
    memory_id: str,
    body: ReasonBody = _NO_REASON,
    if_match: IfMatch = None,
) -> JsonResponse:
    """Ask once more for the enrichment of a memory whose state is `failed` or `kept-raw`."""
    expected = etag.expected_versions(if_match, None)
    memory = await enrich_again.enrich_again(
        resources, caller, memory_id, check_reason(body.reason), expected
    )
    return memory_response(memory, HTTPStatus.ACCEPTED)
