"""Turns: append, read, edit and delete them, read the conversation window, and search across sessions."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path, Query

from services.gateway import errors as gateway_errors
from services.gateway import etag
from services.gateway.api_model import parse
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import MAY_READ, IdempotencyKeyDep, ReadCaller, ResourcesDep, WriteCaller
from services.gateway.etag import IfMatch
from services.gateway.exact_json import ExactBodyDep
from services.gateway.paths import SessionId
from services.gateway.responses import JsonResponse
from services.gateway.search_response import FoundTurns, search_response
from services.gateway.state_response_models import AppendedTurns
from services.gateway.turn_models import (
    AppendedTurn,
    ClearedTurns,
    DeletedTurn,
    PoppedTurn,
    TurnBody,
    TurnPatch,
    TurnResponse,
    TurnsBody,
    TurnSearchBody,
    TurnsResponse,
)
from services.gateway.waiting import WAITS
from shared.conversation.turns import append, log, window
from shared.conversation.turns import search as turn_search
from shared.conversation.turns.search import TurnFilters
from shared.conversation.turns.turn import Turn, TurnDraft
from shared.dreams.runs import mine_session
from shared.dreams.runs.dream_run import Run
from shared.foundation import errors
from shared.lifecycle import delete_turns, edit_turn
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1", tags=["sessions"])
_MAX_SEQ = 2**31 - 1
_DEFAULT_LAST, _DEFAULT_LIMIT = 20, 100
Seq = Annotated[int, Path(ge=1, le=_MAX_SEQ, description="The number of a turn.", examples=[2])]
Number = Annotated[int | None, Query(ge=0, le=_MAX_SEQ)]


@router.post(
    "/sessions/{session_id:session}/turns/batch",
    status_code=HTTPStatus.CREATED,
    dependencies=[WAITS],
    response_model=AppendedTurns,
)
async def append_turns(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: TurnsBody,
    exact_body: ExactBodyDep,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Append up to 1000 turns. Each result is the turn's `seq` and `version`, or the problem with it."""
    drafts: list[TurnDraft] = []
    problems_by_position: dict[int, dict[str, Any]] = {}
    for position, item in enumerate(body.turns):
        try:
            draft = parse(TurnBody, item).draft(exact_body, "turns", position)
            append.check_draft(caller, draft)
            drafts.append(draft)
        except errors.LociError as error:
            problems_by_position[position] = gateway_errors.problem_from_error(error)
    results = await append.append(
        resources, caller, session_id, drafts, idempotency_key, problems_by_position
    )
    status = HTTPStatus.CREATED if drafts else HTTPStatus.UNPROCESSABLE_ENTITY
    return JsonResponse({"results": results}, status)


@router.post(
    "/sessions/{session_id:session}/turns",
    status_code=HTTPStatus.CREATED,
    response_model=AppendedTurn,
    dependencies=[WAITS],
)
async def append_turn(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: TurnBody,
    exact_body: ExactBodyDep,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Append a turn."""
    drafts = [body.draft(exact_body)]
    [appended] = await append.append(resources, caller, session_id, drafts, idempotency_key)
    return JsonResponse(appended, HTTPStatus.CREATED, {"etag": etag.to_etag(appended["version"])})


@router.post("/sessions/{session_id:session}/turns/pop", response_model=PoppedTurn, dependencies=[MAY_READ])
async def pop_turn(
    resources: ResourcesDep, caller: WriteCaller, session_id: SessionId, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Delete the last turn of a session and return it. If there is none, `turn` is null.

    The key needs the rights to write and to read.
    """
    turn = await delete_turns.pop_turn(resources, caller, session_id, idempotency_key)
    return JsonResponse({"turn": None if turn is None else turn.to_json()})


@router.post("/sessions/{session_id:session}/mine", status_code=HTTPStatus.ACCEPTED, response_model=Run)
async def mine_turns(
    resources: ResourcesDep, caller: WriteCaller, session_id: SessionId, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Mine facts out of the turns of a session now, and out of all others of its scope that were not mined.

    The response is the run that does it. While another run over the scope has not ended, it is that one; the
    turns that it leaves are mined right after it.
    """
    run = await mine_session.mine_session(resources, caller, session_id, idempotency_key)
    return JsonResponse(run, HTTPStatus.ACCEPTED)


@router.get("/sessions/{session_id:session}/turns", response_model=TurnsResponse)
async def list_turns(
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: SessionId,
    last: Annotated[int | None, Query(ge=1, le=100, description="The window: 20 if not given.")] = None,
    after_seq: Number = None,
    before_seq: Number = None,
    limit: Annotated[int | None, Query(ge=1, le=100)] = None,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.")] = None,
) -> JsonResponse:
    """Read the conversation window, or the log by pages.

    With `last`, and without any parameter, these are the last turns of the window; none if the session has
    been idle too long. With `after_seq`, `cursor` or `limit`, a page of the whole log follows that number;
    with `before_seq` it precedes it.
    """
    positions = [value for value in (after_seq, before_seq, cursor) if value is not None]
    if len(positions) > 1 or (last is not None and (positions or limit is not None)):
        rule = "stands alone, and of after_seq, before_seq and cursor only one may be given"
        raise errors.Invalid("last", rule)
    if not positions and limit is None:
        turns = await window.read_window(resources, caller, session_id, last or _DEFAULT_LAST)
        return _page(turns, None)
    limit = limit or _DEFAULT_LIMIT
    if before_seq is not None:
        return _page(await log.read_page_before(resources, caller, session_id, before_seq, limit), None)
    start = (after_seq or 0) if cursor is None else _parse_cursor(cursor)
    turns = await log.read_page(resources, caller, session_id, start, limit + 1)
    next_cursor = str(turns[limit - 1].seq) if len(turns) > limit else None
    return _page(turns[:limit], next_cursor)


def _parse_cursor(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdecimal() and int(cursor[:11]) <= _MAX_SEQ):
        raise errors.Invalid("cursor", "is not one that a list has returned")
    return int(cursor)


def _page(turns: list[Turn], next_cursor: str | None) -> JsonResponse:
    return JsonResponse({"results": [turn.to_json() for turn in turns], "next_cursor": next_cursor})


@router.delete("/sessions/{session_id:session}/turns", response_model=ClearedTurns)
async def clear_turns(resources: ResourcesDep, caller: WriteCaller, session_id: SessionId) -> JsonResponse:
    """Delete all turns of a session, and what was derived from them. Their numbers are not used again."""
    deleted = await delete_turns.clear_turns(resources, caller, session_id)
    return JsonResponse({"session_id": session_id, "deleted": deleted})


@router.get("/sessions/{session_id:session}/turns/{seq:int}", response_model=TurnResponse)
async def get_turn(
    resources: ResourcesDep, caller: ReadCaller, session_id: SessionId, seq: Seq
) -> JsonResponse:
    """Read a turn, with its version as an entity tag."""
    return _turn_response(await log.read_turn(resources, caller, session_id, seq))


@router.patch(
    "/sessions/{session_id:session}/turns/{seq:int}", response_model=TurnResponse, dependencies=[WAITS]
)
async def change_turn(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    seq: Seq,
    body: TurnPatch,
    exact_body: ExactBodyDep,
    if_match: IfMatch = None,
) -> JsonResponse:
    """Change fields of a turn. What was derived from its old text alone is deleted."""
    expected = etag.expected_versions(if_match, None)
    fields = body.fields(exact_body)
    return _turn_response(await edit_turn.edit_turn(resources, caller, session_id, seq, fields, expected))


@router.delete("/sessions/{session_id:session}/turns/{seq:int}", response_model=DeletedTurn)
async def delete_turn(
    resources: ResourcesDep, caller: WriteCaller, session_id: SessionId, seq: Seq, if_match: IfMatch = None
) -> JsonResponse:
    """Delete a turn, and what was derived from it alone. If there is none, `deleted` is false."""
    expected = etag.expected_versions(if_match, None)
    deleted = await delete_turns.delete_turn(resources, caller, session_id, seq, expected)
    return JsonResponse({"session_id": session_id, "seq": seq, "deleted": deleted})


def _turn_response(turn: Turn) -> JsonResponse:
    return JsonResponse(turn.to_json(), headers={"etag": etag.to_etag(turn.version)})


@router.post("/turns/search", response_model=FoundTurns)
async def search_turns(resources: ResourcesDep, caller: ReadCaller, body: TurnSearchBody) -> JsonResponse:
    """Search turns by content, across sessions; filter them by session and time."""
    filters = TurnFilters(body.session_id, None, body.created_after, body.created_before)
    scope = rights.scope(caller, Area.SESSIONS, Action.READ, body.agent_id, body.user_id)
    hits = await turn_search.search(resources, scope, body.query, filters, body.limit)
    return search_response(hits.results, hits.stages, hits.degraded, explain=body.explain)
