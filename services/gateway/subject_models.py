"""Responses of the lists of users and of agents."""

from datetime import datetime
from typing import Any

from services.gateway import responses
from services.gateway.api_model import ApiModel
from services.gateway.responses import JsonResponse
from shared.lifecycle.subject_queries import KnownSubject


class KnownSubjectResponse(ApiModel):
    """A user or an agent, with when the last memory was seen or the last session opened."""

    id: str
    last_active_at: datetime | None


class KnownSubjectPage(ApiModel):
    """A page of users or agents, by id."""

    results: list[KnownSubjectResponse]
    next_cursor: str | None


def page_of_subjects(subjects: list[KnownSubject], limit: int) -> JsonResponse:
    """Return a page. A further subject than `limit` is the first of the next page."""
    return responses.id_page_response(subjects, limit, _to_json, lambda subject: subject.id)


def _to_json(subject: KnownSubject) -> dict[str, Any]:
    response = KnownSubjectResponse(id=subject.id, last_active_at=subject.last_active_at)
    return response.model_dump(mode="json")
