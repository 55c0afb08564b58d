"""Feedback: report signals of what went well or wrong in a session, and list them."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Query

from services.gateway import responses
from services.gateway.api_model import ApiModel, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.paths import SessionId
from services.gateway.response_models import Page
from services.gateway.responses import JsonResponse
from shared.conversation.feedback import report as feedback_report
from shared.conversation.feedback.feedback_signal import FeedbackSignal, FeedbackSignalDraft, SignalType
from shared.conversation.feedback.report import DEFAULT_DAYS
from shared.foundation import validation
from shared.foundation.optional_fields import without_none
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area

router = authenticated_router(prefix="/v1", tags=["feedback"])
_EXAMPLE = {"type": "UserThumbsDown", "summary": "The invoice went to the old address."}


class SignalBody(ApiModel):
    """A feedback signal of the session in the path."""

    model_config = example(_EXAMPLE)

    type: SignalType
    summary: str
    detail: str | None = None

    def draft(self) -> FeedbackSignalDraft:
        """Return the signal to save. Raise errors.Invalid if it breaks a rule."""
        return FeedbackSignalDraft(type=self.type, summary=self.summary, detail=self.detail).validated()


class SessionSignalBody(SignalBody):
    """A feedback signal that names its session."""

    model_config = example({"session_id": "support-42", **_EXAMPLE})

    session_id: str


@router.post(
    "/sessions/{session_id:session}/feedback", status_code=HTTPStatus.CREATED, response_model=FeedbackSignal
)
async def report_in_session(
    resources: ResourcesDep,
    caller: WriteCaller,
    session_id: SessionId,
    body: SignalBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Report a feedback signal of a session."""
    return JsonResponse(
        await feedback_report.report(resources, caller, session_id, body.draft(), idempotency_key),
        HTTPStatus.CREATED,
    )


@router.post("/feedback", status_code=HTTPStatus.CREATED, response_model=FeedbackSignal)
async def report(
    resources: ResourcesDep, caller: WriteCaller, body: SessionSignalBody, idempotency_key: IdempotencyKeyDep
) -> JsonResponse:
    """Report a feedback signal of the session that the body names."""
    session_id = validation.check_identifier(body.session_id, "session_id")
    return JsonResponse(
        await feedback_report.report(resources, caller, session_id, body.draft(), idempotency_key),
        HTTPStatus.CREATED,
    )


@router.get("/feedback", response_model=Page[FeedbackSignal])
async def list_signals(  # noqa: PLR0913
    resources: ResourcesDep,
    caller: ReadCaller,
    session_id: str | None = None,
    type: SignalType | None = None,  # noqa: A002
    days: Annotated[int, Query(ge=1, le=3660)] = DEFAULT_DAYS,
    agent_id: str | None = None,
    user_id: str | None = None,
    limit: Limit = feedback_report.DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> JsonResponse:
    """List the feedback signals of the last `days` days, newest first."""
    rights.scope(caller, Area.SESSIONS, Action.READ, agent_id, user_id)
    filters = without_none(session_id=session_id, type=type, agent_id=agent_id, user_id=user_id)
    after = responses.decode_cursor(cursor)
    rows = await feedback_report.list_signals(resources, caller, filters, days, limit + 1, after)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )
